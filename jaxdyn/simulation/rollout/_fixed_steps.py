"""Fixed steps in one plain loop."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, check_count, check_positive
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.simulation.events import bind_switches
from jaxdyn.simulation.solvers import MotionTerm, check_methods, prepare_solver
from jaxdyn.simulation.system import State, System, as_system, pack_parts, underlying_state, unpack_parts


def integrate_fixed_steps(
    system: Model | System,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    t0: ArrayLike,
    dt: ArrayLike,
    num_steps: int,
    *,
    solver: diffrax.AbstractSolver | None = None,
    adjoint: diffrax.AbstractAdjoint | None = None,
    parts: tuple[PyTree, ...] | None = None,
) -> State:
    """The states after each of `num_steps` steps of length `dt`, in one `lax.scan`.

    The results equal those of `simulate(..., dt=dt)` at the ends of its steps. The loop compiles and runs several times
    as fast, because it has no adaptive steps, events, times within steps, status or checkpoints. It is compiled once
    for each structure of the system, number of steps and set of options.

    Arguments:

    * `system`: a model, or a system without sampled parts whose motion does not project.
    * `q0`, `v0`: the state at the start, `(nq,)` and `(nv,)`.
    * `t0`: time of the start, s.
    * `dt`: length of a step, s.
    * `num_steps`: number of steps.
    * `solver`: as for `simulate`, by default `diffrax.Tsit5()`.
    * `adjoint`: the adjoint of diffrax whose mode of differentiation is used: `diffrax.ForwardMode()` for forward mode,
      otherwise reverse mode, which stores all steps.
    * `parts`: states of the parts at the start, as for `simulate`.

    Returns a `State` whose arrays have a leading axis of `num_steps + 1` rows, the first of which is the start. Raises
    `ModelError` if samples or projections would change the state between steps, or the solver cannot integrate the
    system; `ShapeError` if there are no steps.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import SemiImplicitEuler, integrate_fixed_steps

    start = jnp.array([1.0]), jnp.zeros(1)
    path = integrate_fixed_steps(jd.robots.pendulum(), *start, 0.0, 0.01, 100, solver=SemiImplicitEuler())
    assert path.q.shape == (101, 1)
    ```
    """
    system = as_system(system)
    q0, v0 = check_state(system.model, q0=q0, v0=v0)
    check_count("num_steps", num_steps)
    check_positive("dt", dt, "s")
    check_methods(solver, None, adjoint)
    bind_switches((), system)  # refuses parts that need events
    if system.updates_between_steps:
        raise ModelError(
            "integrate_fixed_steps makes steps alone, and this system has sampled parts or a motion that projects the "
            "state between steps; use simulate(..., dt=...)"
        )
    solver = diffrax.Tsit5() if solver is None else solver
    adjoint = diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint
    solver = prepare_solver(solver, system, adjoint)
    t0, dt = (jnp.asarray(x, jnp.result_type(q0, v0)) for x in (t0, dt))
    return _integrate(system, solver, system.initial(q0, v0, t0, parts), t0, dt, int(num_steps))


@eqx.filter_jit  # a loop outside of a compiled function is compiled at every call
def _integrate(system: System, solver: diffrax.AbstractSolver, start: State, t0, dt, num_steps: int) -> State:
    term = MotionTerm()
    packed = State(start.q, start.v, pack_parts(start.parts))
    memory = solver.init(term, t0, t0 + dt, packed, system)

    def step(carry, k):
        y, memory = carry
        t = t0 + k * dt
        y, _, _, memory, _ = solver.step(term, t, t + dt, y, system, memory, made_jump=False)
        return (y, memory), underlying_state(system, y)

    _, states = jax.lax.scan(step, (packed, memory), jnp.arange(num_steps).astype(dt.dtype))
    states = State(states.q, states.v, unpack_parts(states.parts))
    return jax.tree.map(lambda x, rows: jnp.concatenate([x[None], rows]), start, states)
