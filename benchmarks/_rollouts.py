"""Rollouts of jaxdyn, MuJoCo and MJX by semi-implicit Euler steps of free motion under gravity."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._export import to_mjcf
from benchmarks._problems import Problem, problem, to_mujoco
from benchmarks._timing import Effort, Row, checked, deviation, failed, measure, measure_jax

STEP = 0.002  # s
STEPS, LONG = 20, 100  # steps of a rollout; LONG for a batch of one and for gradients
GRADIENT_BATCH = 64
ROLLOUT, GRADIENT = "rollout", "gradient"
ROBOTS = ("double_pendulum", "panda", "humanoid")
#: required agreement before timing. The schemes are equal where joints have one coordinate. With a free base they
#: differ at second order of the step: MuJoCo integrates the base's linear velocity in world axes, jaxdyn in base axes
TOLERANCE = {("float64", False): 1e-8, ("float32", False): 2e-2, ("float64", True): 5e-3, ("float32", True): 5e-2}
CHECKED = 64  # compared samples of a batch

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]


def rods(samples: int) -> Problem:
    """A double pendulum of two rods; MuJoCo rejects the point masses of `robots.double_pendulum`."""
    from jaxdyn.robots import planar_chain

    rng = np.random.default_rng(0)
    draw = lambda: rng.standard_normal((samples, 2))
    model = planar_chain(2, length=0.5, mass=1.0, radius=0.02)
    return Problem(
        "double_pendulum", model, rng.uniform(-2, 2, (samples, 2)), draw(), draw(), draw(), rng.normal(size=2)
    )


def steps_of(work: str, batch: int) -> int:
    return LONG if work == GRADIENT or batch == 1 else STEPS


def tolerance(p: Problem, dtype: str) -> float:
    return TOLERANCE[dtype, p.floating]


# MuJoCo in C


class Mujoco:
    """The robot in MuJoCo without contacts and constraints, with rollouts by `mujoco.rollout` in one thread."""

    def __init__(self, p: Problem):
        import mujoco

        self.p = p
        self.model = mujoco.MjModel.from_xml_string(to_mjcf(p.model))
        self.model.opt.timestep = STEP
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        self.data = mujoco.MjData(self.model)
        q, v, *_ = to_mujoco(p)
        self.start = np.concatenate([np.zeros((len(q), 1)), q, v], axis=1)

    def run(self, batch: int, steps: int) -> Callable[[], np.ndarray]:
        from mujoco import rollout

        start = np.ascontiguousarray(self.start[:batch])
        out = np.zeros((batch, steps, start.shape[1]))
        empty = np.zeros((batch, steps, self.model.nsensordata))
        return lambda: rollout.rollout(self.model, [self.data], start, nstep=steps, state=out, sensordata=empty)[0]

    def last(self, batch: int, steps: int) -> np.ndarray:
        """Final states `(q, v)` in MuJoCo's conventions."""
        return np.array(self.run(batch, steps)()[:, -1, 1:])


def mujoco_rows(p: Problem, batches, effort: Effort) -> Iterator[Row]:
    engine = Mujoco(p)
    for batch in batches:
        steps = steps_of(ROLLOUT, batch)
        times = measure(engine.run(batch, steps), batch * steps, effort)
        yield Row(p.name, ROLLOUT, "float64", batch, "mujoco.rollout", 0.0, *times, 0.0)


# The JAX engines: functions of (constants, q, v) that return the final state


def jaxdyn_engines(p: Problem, dtype: str, steps: int) -> Iterator[Case]:
    """`simulate`, and the same step in a plain loop."""
    import diffrax
    import jax
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.simulation import SemiImplicitEuler

    model = p.model.astype(dtype)
    ts = jnp.array([0, steps * STEP], dtype)
    options: dict[str, Any] = {"dt": jnp.asarray(STEP, dtype), "solver": SemiImplicitEuler(), "max_steps": steps + 1}

    def run_simulate(model, q, v):
        adjoint = diffrax.RecursiveCheckpointAdjoint()
        end = jd.simulate(jd.System(model, passive=False), q, v, ts, adjoint=adjoint, **options)
        return end.q[-1], end.v[-1]

    def run_loop(model, q, v):
        h = jnp.asarray(STEP, dtype)

        @jax.checkpoint
        def step(state, _):
            q, v = state
            v = v + h * jd.forward_dynamics(model, q, v, jnp.zeros_like(v))
            return (jd.integrate(model, q, h * v), v), None

        return jax.lax.scan(step, (q, v), length=steps)[0]

    yield "jaxdyn simulate", run_simulate, (model,)
    yield "jaxdyn, loop of lax.scan", run_loop, (model,)


def mjx_engines(p: Problem, dtype: str, steps: int) -> Iterator[Case]:
    """`mjx.step` in a loop."""
    import jax
    from mujoco import mjx

    model = mjx.put_model(Mujoco(p).model)
    data = mjx.make_data(model)

    def run_loop(model, data, q, v):
        step = jax.checkpoint(lambda d, _: (mjx.step(model, d), None))
        end = jax.lax.scan(step, data.replace(qpos=q, qvel=v), length=steps)[0]
        return end.qpos, end.qvel

    yield "MJX", run_loop, (model, data)


ENGINES = {"jaxdyn": jaxdyn_engines, "mjx": mjx_engines}


def jax_rows(engine: str, p: Problem, dtype: str, batches, effort: Effort, gradients: bool) -> Iterator[Row]:
    """Rollouts of every batch, the largest first, and the gradient of one batch if `gradients`."""
    reference = Mujoco(p)
    for batch in sorted(batches, reverse=True):
        steps = steps_of(ROLLOUT, batch)
        for name, run, constants in ENGINES[engine](p, dtype, steps):
            try:
                row = _rollout(p, run, constants, dtype, batch, effort, reference, engine)
                yield replace(row, engine=name)
            except Exception as error:
                yield failed(p.name, ROLLOUT, dtype, batch, name, error)
    for name, run, constants in ENGINES[engine](p, dtype, LONG) if gradients else ():
        try:
            yield replace(_gradient(p, run, constants, dtype, effort, reference, engine), engine=name)
        except Exception as error:
            yield failed(p.name, GRADIENT, dtype, GRADIENT_BATCH, name, error)


def _state(p: Problem, engine: str, dtype: str, batch: int):
    import jax.numpy as jnp

    q, v = (p.q, p.v) if engine == "jaxdyn" else to_mujoco(p)[:2]
    return tuple(jnp.asarray(x[:batch], dtype) for x in (q, v))


def _rollout(p: Problem, run, constants, dtype: str, batch: int, effort: Effort, reference: Mujoco, engine: str) -> Row:
    import jax

    q, v = _state(p, engine, dtype, batch)
    steps = steps_of(ROLLOUT, batch)
    if batch == 1:
        many, state = run, (q[0], v[0])
    else:
        many, state = jax.vmap(run, (*(None for _ in constants), 0, 0)), (q, v)
    end, *times = measure_jax(many, (*constants, *state), batch * steps, effort)
    n = min(batch, CHECKED)
    found = [np.asarray(x, float).reshape(batch, -1)[:n] for x in end]
    if engine == "jaxdyn":
        found = to_mujoco(Problem(p.name, p.model, *found, *(np.zeros_like(found[1]),) * 2, p.weights))[:2]
    error = deviation(np.concatenate(found, axis=1), reference.last(n, steps))
    return checked(Row(p.name, ROLLOUT, dtype, batch, "", *times, error), tolerance(p, dtype))


def _gradient(p: Problem, run, constants, dtype: str, effort: Effort, reference: Mujoco, engine: str) -> Row:
    """Times the gradient of a weighted sum of final joint velocities with respect to the initial state."""
    import jax
    import jax.numpy as jnp

    skip = 6 * p.floating
    weights = jnp.asarray(p.weights[skip:], dtype)
    q, v = _state(p, engine, dtype, GRADIENT_BATCH)

    def slope(*args):
        *constants, q, v = args
        return jax.grad(lambda q, v: run(*constants, q, v)[1][skip:] @ weights, argnums=(0, 1))(q, v)

    many = jax.vmap(slope, (*(None for _ in constants), 0, 0))
    found, *times = measure_jax(many, (*constants, q, v), GRADIENT_BATCH * LONG, effort)
    error = _slope_error(p, np.asarray(found[1], float)[:2], reference)
    # limited by the central difference of MuJoCo, and in single precision by the divergence of the motions
    allowed = max(tolerance(p, dtype), 1e-5)
    return checked(Row(p.name, GRADIENT, dtype, GRADIENT_BATCH, "", *times, error), allowed)


def _slope_error(p: Problem, by_v: np.ndarray, reference: Mujoco, width: float = 1e-5) -> float:
    """Deviation of the derivatives by joint velocities from central differences of MuJoCo's rollouts."""
    skip, n = 6 * p.floating, len(by_v)
    start = reference.start[:n].copy()
    rows = len(start[0]) - p.model.nv

    def value(k: int, shift: float) -> np.ndarray:
        reference.start[:n] = start
        reference.start[:n, rows + k] += shift
        end = reference.last(n, LONG)
        reference.start[:n] = start
        return end[:, -p.model.nv + skip :] @ p.weights[skip:]

    slopes = [(value(k, width) - value(k, -width)) / (2 * width) for k in range(skip, p.model.nv)]
    return deviation(by_v[:, skip:], np.stack(slopes, axis=1))


def rows(engine: str, dtype: str, robots, batches, effort: Effort, *, gradients: bool = True) -> Iterator[Row]:
    """All rows of one engine and precision."""
    for name in robots:
        samples = max(*batches, GRADIENT_BATCH)
        p = rods(samples) if name == "double_pendulum" else problem(name, samples)
        if engine == "mujoco":
            yield from mujoco_rows(p, batches, effort)
        else:
            yield from jax_rows(engine, p, dtype, batches, effort, gradients)
