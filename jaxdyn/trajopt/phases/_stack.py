"""The places of several phases in one state and one vector of controls, and their clocks.

All phases run at the same time over the fraction s of the horizon, from 0 to 1, alternately forward and backward in
their own time: the end of each phase meets the start of the next one at the same end of the horizon,

    phase i:  t = t_i + d_i s  (forward)   or   t = t_i + d_i (1 - s)  (backward),    t_i = d_1 + ... + d_{i-1}.

The last phase runs forward. The state is `(x_1, ..., x_P, free durations, costs of backward phases at their ends)`, the
controls are those of all phases, the constraint forces last.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float


class PhasePoint(NamedTuple):
    """A phase at an instant: its time since the start of the first phase (s), state, controls and duration (s)."""

    t: jax.Array
    x: jax.Array
    u: jax.Array
    duration: jax.Array


class PhaseSize(NamedTuple):
    """Numbers of states, controls, and constraint forces among the controls."""

    nx: int
    nu: int
    num_forces: int


class Stack(eqx.Module):
    """The places of the phases in the state and the controls of the whole problem."""

    #: s, None for a free duration, which is a state
    durations: tuple[Float[Array, "*batch"] | None, ...]
    sizes: tuple[PhaseSize, ...] = eqx.field(static=True)
    #: the phases whose final cost is a state
    stored_costs: tuple[int, ...] = eqx.field(static=True)

    @property
    def count(self) -> int:
        """Number of phases."""
        return len(self.sizes)

    @property
    def free(self) -> tuple[int, ...]:
        """The phases with a free duration."""
        return tuple(i for i, d in enumerate(self.durations) if d is None)

    @property
    def num_constants(self) -> int:
        """Number of states that are constant: free durations and stored costs."""
        return len(self.free) + len(self.stored_costs)

    def is_forward(self, i: int) -> bool:
        """Whether phase i runs forward in its own time."""
        return (self.count - 1 - i) % 2 == 0

    def end_side(self, i: int) -> int:
        """The end of the horizon, 0 or 1, at which phase i ends."""
        return int(self.is_forward(i))

    def states(self, i: int) -> slice:
        """The states of phase i."""
        first = sum(size.nx for size in self.sizes[:i])
        return slice(first, first + self.sizes[i].nx)

    def controls(self, i: int) -> np.ndarray:
        """The controls of phase i: efforts, then constraint forces."""
        efforts = [size.nu - size.num_forces for size in self.sizes]
        forces = [size.num_forces for size in self.sizes]
        first, last = sum(efforts[:i]), sum(efforts) + sum(forces[:i])
        return np.concatenate([np.arange(first, first + efforts[i]), np.arange(last, last + forces[i])]).astype(int)

    def duration_index(self, i: int) -> int:
        """The state that is the free duration of phase i."""
        return sum(size.nx for size in self.sizes) + self.free.index(i)

    def cost_index(self, i: int) -> int:
        """The state that is the final cost of phase i."""
        return sum(size.nx for size in self.sizes) + len(self.free) + self.stored_costs.index(i)

    def phase_durations(self, x) -> list[Array]:
        """The durations of all phases in the state x."""
        fixed = enumerate(self.durations)
        return [x[self.duration_index(i)] if d is None else jnp.asarray(d, x.dtype) for i, d in fixed]

    def point(self, i: int, s, x, u) -> PhasePoint:
        """Phase i at the fraction s of the horizon."""
        durations = self.phase_durations(x)
        start = sum(durations[:i], jnp.zeros((), x.dtype))
        fraction = s if self.is_forward(i) else 1 - s
        return PhasePoint(start + fraction * durations[i], x[self.states(i)], u[self.controls(i)], durations[i])

    def points(self, s, x, u) -> list[PhasePoint]:
        """All phases at the fraction s of the horizon."""
        return [self.point(i, s, x, u) for i in range(self.count)]

    def join_states(self, states, durations, rest) -> Array:
        """The vector of states `(..., nx)` of all phases, constants `durations` and, for stored costs, `rest`."""
        constants = [durations] * len(self.free) if isinstance(durations, float) else list(durations)
        constants += [rest] * len(self.stored_costs)
        shape = states[0].shape[:-1]
        columns = [jnp.broadcast_to(jnp.asarray(c, states[0].dtype), shape)[..., None] for c in constants]
        return jnp.concatenate([*states, *columns], axis=-1)

    def join_controls(self, controls) -> Array:
        """The vector of controls `(..., nu)` of all phases."""
        order = np.argsort(np.concatenate([self.controls(i) for i in range(self.count)]))
        return jnp.concatenate(list(controls), axis=-1)[..., order]
