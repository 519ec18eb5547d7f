"""States of a system, and a solver's representations of them."""

import diffrax
import equinox as eqx
import optimistix as optx

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
