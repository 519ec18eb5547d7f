"""Eager calls of entry points with numbers that depend on k, and structures and shapes that do not."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxdyn as jd
from jaxdyn import control, formulations, identification, paths, trajopt
from jaxdyn import simulation as sim
from tests.identification.synthetic_logs import SELECTION, perturb_model, synthetic_log
from tests.identification.synthetic_logs import arm as logged_arm

ARM, LOGGED = jd.robots.double_pendulum(), logged_arm(2)
TIP = ARM.link_names[-1]
ROWS = jnp.eye(6)[np.array([3, 5])]
TIMES = np.linspace(0.0, 1.0, 6)
DAMPING = "joints[*].damping"
ADAM = optax.adam(0.01)


def renumber(tree: Any, k: int) -> Any:
    """The tree with other floating-point numbers of the same shapes and signs, not weakly typed for any k."""
    scale = 1 + 1e-3 * k
    change = lambda x: x * scale if isinstance(x, float) else jnp.asarray(np.asarray(x) * np.asarray(scale, x.dtype))
    is_number = lambda x: isinstance(x, float) or eqx.is_inexact_array(x)
    return jax.tree.map(lambda x: change(x) if is_number(x) else x, tree)


def _vector(k: int, *shape: int, seed: int = 0):
    return jnp.asarray(np.random.default_rng([k, seed]).uniform(-0.5, 0.5, shape))


def _q(k: int):
    return _vector(k, 2, seed=1)


def _v(k: int):
    return _vector(k, 2, seed=2)


def _arm(k: int):
    return renumber(ARM, k)


# control


def _waves(t):
    return jnp.stack([jnp.sin(t), jnp.cos(t)])


def _matrices(k: int):
    return _vector(k, 4, 4, seed=3), _vector(k, 4, 2, seed=4), jnp.eye(4), (1.0 + k) * jnp.eye(2)


def _along(k: int):
    a, b, q, r = _matrices(k)
    return control.riccati_along(renumber(jnp.asarray(TIMES), k), jnp.stack([a] * 6), jnp.stack([b] * 6), q, r, q)


def _tracking(k: int):
    plan = control.nominal_plan(_arm(k), control.PathReference(_waves), renumber(jnp.asarray(TIMES), k))
    return control.tracking_lqr(_arm(k), plan, *_matrices(k)[2:])(0.1 + k, _q(k), _v(k))


def _computed_torque(k: int):
    law = control.ComputedTorque(_arm(k), control.PathReference(_waves), kp=20.0 + k, kd=3.0)
    return law(0.1 + k, _q(k), _v(k))


# paths


def _line(s):
    return jnp.stack([0.5 * s, 0.3 * s + 0.1])


def _pose(t):
    return jd.spatial.Pose(jnp.eye(3), jnp.stack([1.0 + 0.1 * t, 0 * t, -1.0 + 0.1 * t]))


def _follow(k: int):
    times = renumber(jnp.asarray(TIMES), k)
    return paths.follow_frame(_arm(k), TIP, _pose, _q(k), times, rows=ROWS, gain=5.0 + k, damping=0.01 * (1 + k))


# trajectory optimisation


def _mass(t, x, u, mass):
    return jnp.stack([x[1], u[0] / mass])


def _effort(t, x, u):
    return u @ u


def _problem(k: int):
    field = trajopt.VectorField(_mass, ("position", "velocity"), ("force",), jnp.asarray(2.0 + 0.1 * k))
    end = jnp.asarray([1.0 + 0.1 * k, 0.0])
    return trajopt.Problem(field, 1.2 + 0.01 * k, start=jnp.zeros(2), end=end, running=_effort)


def _starts(k: int):
    guesses = trajopt.draw_guesses(_problem(k), jax.random.key(k), 2, spread=0.5 + k)
    return trajopt.multi_start(_problem(k), guesses, method=trajopt.ilqr, intervals=3, tolerance=1e-6 * (1 + k))


def _tracked(k: int):
    problem = trajopt.Problem(_arm(k), 0.3 + 0.01 * k, start=jnp.zeros(4), end=0.1 * _vector(k, 4), running=_effort)
    return trajopt.tracking_law(_arm(k), trajopt.ilqr(problem, intervals=3))(0.1, _q(k), _v(k))


def _predictive(k: int):
    problem = trajopt.Problem(_arm(k), 0.3 + 0.01 * k, start=jnp.zeros(4), running=_effort)
    law = trajopt.ModelPredictive(problem, intervals=3, solver=trajopt.WarmILQR(2))
    return _simulate(k, effort=law)


# simulation


def _simulate(k: int, **options):
    return jd.simulate(_arm(k), _q(k), _v(k), renumber(jnp.array([0.0, 0.02, 0.05]), k), **options)


def _law(k: int):
    return _simulate(k, dt=0.01 + 1e-4 * k, effort=control.GravityPD(_arm(k), _q(k), kp=20.0 + k, kd=3.0))


def _signal(k: int):
    return _simulate(k, dt=0.01, effort=sim.linear_signal(renumber(jnp.array([0.0, 0.1]), k), _vector(k, 2, 2)))


def _event(k: int):
    return _simulate(k, dt=0.01, events=[sim.Event(sim.Coordinate(0, 0.5 + 0.01 * k))])


# identification


def _log(k: int, seed: int = 0):
    return synthetic_log(LOGGED, 0.05, samples=100, seed=seed + k)


def _fit(method: Callable[[int], Any], selection: Any = SELECTION, **options):
    initial = lambda k: renumber(perturb_model(LOGGED), k)
    held_out = lambda k: [_log(k, 10)]
    return lambda k: (
        identification.fit(initial(k), _log(k), selection, method(k), held_out=held_out(k), **options).model
    )


def _huber(k: int):
    return identification.Linear(reweight=2, loss=identification.Huber(1.3 + 0.1 * k))


def _prepared(k: int):
    t, names = np.arange(400) * 0.01, LOGGED.joint_names
    q = np.sin(np.outer(t, [2.0, 3.0]) + 0.1 * k)
    columns = {"t": t} | {f"q.{name}": q[:, i] for i, name in enumerate(names)}
    columns |= {f"effort.{name}": (3 + k) * q[:, i] for i, name in enumerate(names)}
    options = identification.Preparation(cutoff=10.0, effort_delay=None)
    logs, _ = identification.prepare([identification.Table("run", columns)], renumber(LOGGED, k), None, options)
    return logs


def _designed(k: int):
    limits = [jnp.full(2, x * (1 + 0.01 * k)) for x in (-1.0, 1.0, 3.0, 20.0, 50.0)]
    found = identification.design_excitation(
        renumber(LOGGED, k),
        duration=5.0,
        bounds=identification.MotionLimits(*limits),
        samples=20,
        starts=2,
        rounds=2,
        steps=3,
        rate=0.03 + 0.001 * k,
    )
    return found.motion


def _gradient(k: int):
    a = _vector(k, 2, seed=5)
    return jax.grad(lambda m: jd.rnea(m, _q(k), _v(k), a).sum(), allow_int=True)(_arm(k))


#: of every run of the tests
QUICK: dict[str, Callable[[int], Any]] = {
    "continuous_riccati": lambda k: control.continuous_riccati(*_matrices(k)),
    "discrete_riccati": lambda k: control.discrete_riccati(*_matrices(k)),
    "quintic": lambda k: paths.quintic(_q(k), _v(k), 1.0 + k)(0.1 + k),
    "trapezoidal_profile": lambda k: paths.trapezoidal_profile(_q(k), _v(k), 1.0 + k, 2.0)(0.1),
    "Problem": _problem,
    "draw_guesses": lambda k: trajopt.draw_guesses(_problem(k), jax.random.key(k), 2, spread=0.5 + k),
    "reading": lambda k: jd.parse_urdf("<robot name='r'><link name='a'/></robot>"),
}
#: of the slow tier
SLOW: dict[str, Callable[[int], Any]] = {
    "riccati_along": _along,
    "lqr": lambda k: control.lqr(_arm(k), _q(k), _v(k), *_matrices(k)[2:]),
    "follow_frame": _follow,
    "time_path": lambda k: paths.time_path(_arm(k), _line, effort=100.0 + k, start_rate=0.01 * k)(0.1),
    "solve": lambda k: trajopt.solve(_problem(k), intervals=3, tolerance=1e-7 * (1 + k), barrier=0.1 + 0.01 * k),
    "multi_start": _starts,
    "law": _law,
    "event": _event,
    "prepare": _prepared,
    "LevenbergMarquardt": _fit(lambda k: identification.LevenbergMarquardt(rtol=1e-8 * (1 + k), starts=2), DAMPING),
}
#: of the exhaustive tier
LONG: dict[str, Callable[[int], Any]] = {
    "ComputedTorque": _computed_torque,
    "tracking_lqr": _tracking,
    "synchronised_trapezoidal": lambda k: paths.synchronised_trapezoidal(_q(k), _v(k), 1.0 + k, 2.0)(0.1),
    "waypoint_spline": lambda k: paths.waypoint_spline(jnp.array([0, 1.0 + k, 3]), _vector(k, 3, 2))(0.1 + k),
    "resolved_rates": lambda k: paths.resolved_rates(_arm(k), _q(k), TIP, _vector(k, 2), rows=ROWS),
    "ilqr": lambda k: trajopt.ilqr(_problem(k), intervals=3, tolerance=1e-6 * (1 + k), penalty=1e4 + k),
    "single_shooting": lambda k: trajopt.single_shooting(_problem(k), intervals=3, rounds=2, tolerance=1e-3 * (1 + k)),
    "MultipleShooting": lambda k: trajopt.solve(
        _problem(k), intervals=3, transcription=trajopt.MultipleShooting(linear=True)
    ),
    "interval_errors": lambda k: trajopt.interval_errors(trajopt.solve(_problem(k), intervals=3)),
    "gradient of solve": lambda k: jax.grad(lambda p: trajopt.solve(p, intervals=3).cost, allow_int=True)(_problem(k)),
    "tracking_law": _tracked,
    "ModelPredictive": _predictive,
    "adaptive": lambda k: _simulate(k, rtol=1e-6 * (1 + k), atol=1e-8),
    "signal": _signal,
    "SemiImplicitEuler": lambda k: _simulate(k, dt=0.01, solver=sim.SemiImplicitEuler()),
    "Variational": lambda k: _simulate(k, dt=0.01, solver=sim.Variational()),
    "simulate_batch": lambda k: sim.simulate_batch(
        _arm(k), _vector(k, 3, 2), _vector(k, 3, 2), renumber(jnp.array([0.0, 0.02]), k), dt=0.01 + 1e-4 * k
    ),
    "gradient of rnea": _gradient,
    "Physical": _fit(lambda k: identification.Physical(rtol=1e-8 * (1 + k)), weights=[1.0, 2.0]),
    "FirstOrder": _fit(lambda k: identification.FirstOrder(ADAM, max_steps=20, rtol=1e-6 * (1 + k)), DAMPING),
    "Linear": _fit(_huber),
    "LowPassed": _fit(lambda k: identification.LowPassed(5.0, identification.Linear())),
    "OutputError": _fit(lambda k: identification.OutputError(identification.Windows(0.5)), DAMPING),
    "design_excitation": _designed,
    "Lagrange": lambda k: formulations.Lagrange().inverse_dynamics(_arm(k), _q(k), _v(k), _v(k + 1)),
}
