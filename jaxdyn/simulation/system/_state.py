"""States of a system, and a solver's representations of them."""

from collections.abc import Sequence

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float, PyTree
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model


def unsolved_result() -> diffrax.RESULTS:
    """The result, in diffrax's enumeration, of a step whose equations were not solved."""
    return diffrax.RESULTS.promote(optx.RESULTS.nonlinear_max_steps_reached)


class State(eqx.Module):
    """Configuration, velocity and the states of the parts of a system.

    A rate of change is a `State` as well, with the velocity `(nv,)` in place of q and the acceleration in place of v.

    Arguments:

    * `q`: configuration, `(nq,)`.
    * `v`: velocity, `(nv,)`.
    * `parts`: a tuple with the state of each part, or None if the system has no parts.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import State, System

    system = System(jd.robots.pendulum())
    rate = system.rate(0.0, State(jnp.array([jnp.pi / 2]), jnp.zeros(1)))
    assert jnp.allclose(rate.v, -9.81)  # rad/s^2, of a point mass on a horizontal rod of 1 m
    ```
    """

    q: Float[Array, "*batch coordinates"]
    v: Float[Array, "*batch nv"]
    #: not an empty tuple, which equinox's loops take for a number
    parts: tuple[PyTree, ...] | None = None


class ChartedState(eqx.Module):
    """A state whose configuration is `base (+) offset`, as solvers on manifolds interpolate it."""

    base: Float[Array, "*batch coordinates"]
    offset: Float[Array, "*batch nv"]
    v: Float[Array, "*batch nv"]
    parts: tuple[PyTree, ...] | None

    def state(self, model: Model) -> State:
        return State(integrate(model, self.base, self.offset), self.v, self.parts)


def to_state(model: Model, y: PyTree) -> State:
    """The `State` that a solver's iterate or interpolation represents."""
    while not isinstance(y, State):
        y = y.state(model)
    return y


def match_part_states(parts: Sequence[PyTree], given: Sequence[PyTree], initial: Sequence[PyTree]) -> list[PyTree]:
    """The given states of the parts in the structures, shapes and precision of the initial ones; None takes the latter.

    Raises `ModelError` for another number of states or another structure, and `ShapeError` for another shape.
    """
    names = [type(part).__name__ for part in parts]
    if not isinstance(given, tuple | list) or len(given) != len(parts):
        what = f"{len(given)} states" if isinstance(given, tuple | list) else type(given).__name__
        raise ModelError(
            f"parts is {what}; expected a tuple with one state, or None, for each of the parts {names} of the system"
        )
    states = []
    for name, own, start in zip(names, given, initial, strict=True):
        if own is not None and jax.tree.structure(own) != jax.tree.structure(start):
            raise ModelError(
                f"the state of {name} has structure {jax.tree.structure(own)}; expected {jax.tree.structure(start)}"
            )
        match = lambda x, s, name=name: check_shape(f"state of {name}", jnp.asarray(x, s.dtype), s.shape)
        states.append(start if own is None else jax.tree.map(match, own, start))
    return states
