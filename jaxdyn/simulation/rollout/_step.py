"""One step of a system, for loops of one's own: policies, games, environments."""

import itertools

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, check_is_array, check_positive, check_shape
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.simulation.events import bind_switches
from jaxdyn.simulation.solvers import MotionTerm, Rosenbrock, check_methods, prepare_solver
from jaxdyn.simulation.system import (
    Effort,
    Inputs,
    State,
    System,
    as_system,
    pack_parts,
    underlying_state,
    unpack_parts,
)


def step(
    system: Model | System,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    u: Float[Array, " inputs"] | None,
    dt: ArrayLike,
    *,
    t: ArrayLike = 0.0,
    parts: tuple[PyTree, ...] | None = None,
    solver: diffrax.AbstractSolver | None = None,
) -> State:
    """The state after one step of length `dt` under the constant input u, with everything that acts on the robot.

    The default solver is linearly implicit in the whole state (`Rosenbrock`), so that friction, stiff drives and
    springs stay stable at steps of milliseconds. `forward_dynamics` alone knows no friction and no parts, and a loop
    of one's own around it is explicit.

    Arguments:

    * `system`: a model, or a system without sampled parts.
    * `q`, `v`: the state, `(nq,)` and `(nv,)`.
    * `u`: inputs of the actuators, `(inputs,)` in their order among the parts; of a system without actuators the
      efforts on the velocity coordinates, `(nv,)` in N m or N. None stands for the system's own controller, or for no
      effort.
    * `dt`: s.
    * `t`: time at the start, s.
    * `parts`: states of the parts, from the last step; by default their initial states.
    * `solver`: another solver of diffrax or jaxdyn.

    Returns a `State` with `q`, `v` and `parts`. Pure, for use in `jax.jit`, `jax.vmap`, `jax.lax.scan` and `jax.grad`.
    Raises `ModelError` for sampled parts, and `ShapeError` for inputs of another length.

    ```python
    import jax
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.pendulum(damping=20.0)
    step = jax.jit(lambda q, v, u: jd.step(model, q, v, u, 0.05))
    q, v = jnp.array([0.3]), jnp.zeros(1)
    for _ in range(100):
        state = step(q, v, -2.0 * q)
        q, v = state.q, state.v
    assert jnp.abs(q).max() < 0.2
    ```
    """
    system = as_system(system)
    q, v = check_state(system.model, q=q, v=v)
    check_positive("dt", dt, "s")
    check_methods(solver, None, None)
    bind_switches((), system)  # refuses parts that need events
    if system.sampled:
        raise ModelError("step makes one step of a system without sampled parts; use simulate(..., dt=...)")
    t, dt = (jnp.asarray(x, jnp.result_type(q, v)) for x in (t, dt))
    start = system.initial(q, v, t, parts)
    commanded = system if u is None else _with_inputs(system, u)
    solver = prepare_solver(Rosenbrock() if solver is None else solver, commanded, diffrax.RecursiveCheckpointAdjoint())
    own = [x is y for x, y in itertools.zip_longest(system.parts, commanded.parts)]
    states = tuple(x if same else None for x, same in itertools.zip_longest(start.parts or (), own))
    end = _step(commanded, solver, commanded.initial(q, v, t, states), t, dt)
    moved = zip(start.parts or (), end.parts or (), own, strict=False)
    return State(end.q, end.v, tuple(y if same else x for x, y, same in moved) or None)


def _with_inputs(system: System, u) -> System:
    """The system whose actuators have the constant inputs u, or on whose coordinates the efforts u act.

    Its parts are those of the system, in their order; the source of the inputs takes the place of a present one.
    """
    if not system.num_inputs:
        parts = (*system.parts, Effort(*check_state(system.model, u=u)))
        return System(system.model, parts, system.motion, system.passive)
    check_is_array("u", u, (system.num_inputs,))
    source = Inputs(check_shape("u", u, (system.num_inputs,)))
    parts = tuple(source if isinstance(x, Inputs) else x for x in system.parts)
    parts = parts if any(x is source for x in parts) else (*parts, source)
    return System(system.model, parts, system.motion, system.passive)


@eqx.filter_jit
def _step(system: System, solver: diffrax.AbstractSolver, start: State, t, dt) -> State:
    term = MotionTerm()
    packed = State(start.q, start.v, pack_parts(start.parts))
    memory = solver.init(term, t, t + dt, packed, system)
    end = underlying_state(system, solver.step(term, t, t + dt, packed, system, memory, made_jump=False)[0])
    q, v = end.q, end.v
    if system.motion.projects:
        q, v = system.motion.project(system.mounted_model, t + dt, q, v)
    return State(q, v, unpack_parts(end.parts))
