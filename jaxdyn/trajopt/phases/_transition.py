"""Transitions between the phases of a multi-phase problem."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._numerics import as_function
from jaxdyn.trajopt.problem import PointFunction, StateFunction


def _as_optional_function(f):
    return None if f is None else as_function(f)


class Transition(eqx.Module):
    """The passage from one phase to the next: `x_next(start) = map(x(end))`, and conditions at the end of the phase.

    Arguments:

    * `map`: from the state at the end of a phase to the state at the start of the next one, such as an impact; by
      default the state is continuous.
    * `condition`: `(t, x, u) -> (rows,)` at the end of the phase, zero at a solution: a gap at touch-down, a normal
      force at lift-off; by default none. The time t counts from the start of the first phase.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Transition


    def bounce(x):
        return jnp.stack([x[0], -0.8 * x[1]])


    def height(t, x, u):
        return x[0]


    impact = Transition(bounce, height)
    assert impact.apply(jnp.array([0.0, -2.0]))[1] == 1.6
    ```
    """

    map: StateFunction | None = eqx.field(converter=_as_optional_function, default=None)
    condition: PointFunction | None = eqx.field(converter=_as_optional_function, default=None)

    def apply(self, x):
        """The state at the start of the next phase."""
        return x if self.map is None else jnp.asarray(self.map(x))
