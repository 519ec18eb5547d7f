"""Saved and loaded systems, constraints, trajectories and optima."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn import actuators, constraints, control, simulation, trajopt
from tests.io.test_save import round_trip, same


def _signal(times, rows):
    return simulation.linear_signal(jnp.asarray(times), jnp.asarray(rows))


def _law(t, q, v):
    return -q - v


PARTS = {
    "motor": lambda m: actuators.DcMotor(
        m.joint_names[0], 12.0, constant=0.05, resistance=2.0, inductance=0.01, gear=50
    ),
    "motor on a law": lambda m: actuators.DcMotor(m.joint_names[0], _law, constant=0.05, resistance=2.0),
    "drive": lambda m: actuators.drive(m, gain=3.0, delay=0.01, command=_signal([0.0, 1.0], [[0.0, 1], [2, 3]]).path),
    "friction": lambda m: actuators.joint_friction(m),
    "efforts": lambda m: simulation.Effort(jnp.ones(2)),
    "signal": lambda m: _signal([0.0, 1.0], [[0.0, 1], [2, 3]]),
    "cubic signal": lambda m: simulation.cubic_signal(jnp.arange(3.0), jnp.ones((3, 2))),
    "held signal": lambda m: simulation.HeldSignal(jnp.ones((3, 2)), 0.1),
    "wrench": lambda m: simulation.Wrench(m.link_names[-1], jnp.arange(6.0)),
    "feedback": lambda m: simulation.Feedback(_law),
    "sampled feedback": lambda m: simulation.SampledFeedback(_law, 0.01),
    "controller": lambda m: simulation.Feedback(control.ComputedTorque(m, jnp.ones(2), 2.0, 1.0)),
}


@pytest.mark.parametrize("name", PARTS)
def test_systems(tmp_path, name):
    """Systems with all kinds of parts; functions of the user are listed."""
    model = jd.robots.double_pendulum()
    system = jd.System(model, (PARTS[name](model),))
    same(round_trip(tmp_path / "x", system, allow=(_law,)), system)


CLOSED = ("four_bar", "slider_crank", "five_bar", "n_four_bar", "bricard", "delta")


@pytest.mark.parametrize("name", CLOSED)
def test_closed_mechanisms(tmp_path, name):
    """Models with closures, and systems with constrained motion."""
    model = getattr(jd.robots, name)()
    along = constraints.described_constraints(model)
    motion = constraints.ConstrainedMotion(along, stabilisation=constraints.Baumgarte())
    tree = (model, along, jd.System(model, motion=motion))
    same(round_trip(tmp_path / "x", tree), tree)


def test_every_closure(tmp_path):
    end = constraints.End("link1", jnp.array([0.1, 0.2, 0.3]))
    kinds = ("Point", "Weld", "Revolute", "Cylindrical", "Prismatic", "Planar")
    world = constraints.End("world", jnp.zeros(3))
    tied = [getattr(constraints, f"{kind}Closure")(kind, end, world) for kind in kinds]
    tree = (*tied, constraints.Distance("rod", end, world, 0.5))
    same(round_trip(tmp_path / "x", tree), tree)


def _rate(t, x, u, parameters):
    return jnp.stack([x[1], u[0]])


def _square(t, x, u):
    return u @ u


@pytest.mark.slow
@pytest.mark.parametrize("method", [trajopt.solve, trajopt.ilqr], ids=lambda f: f.__name__)
def test_optima(tmp_path, method):
    """A solution with its problem and the state of the method; only shapes are computed here."""
    dynamics = trajopt.VectorField(_rate, ("p", "v"), ("u",))
    make = lambda end: trajopt.Problem(dynamics, 1.0, start=jnp.zeros(2), end=end, running=_square)
    shapes = jax.eval_shape(lambda end: method(make(end), intervals=4), jnp.ones(2))
    solution = jax.tree.map(lambda x: jnp.full(x.shape, 7, x.dtype), shapes)
    back = round_trip(tmp_path / "x", solution, allow=(_rate, _square))
    same(back, solution)
