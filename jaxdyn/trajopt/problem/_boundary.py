"""Boundary conditions of the states, or controls, at one end of the horizon."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdyn._errors import ShapeError
from jaxdyn._numerics import as_function
from jaxdyn._types import Array, Float
from jaxdyn.trajopt.problem._signatures import StateFunction


class Boundary(eqx.Module):
    """Boundary conditions of the states, or controls, at one end: fixed components, and functions that vanish.

    `Problem` makes boundaries from states, `partial(values, components)` and functions.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Boundary

    # a fixed position, and a given kinetic energy
    end = Boundary(jnp.array([1.0, 0.0]), (True, False), lambda x: x[1] ** 2 - 4.0)
    assert jnp.allclose(end.residual(jnp.array([1.5, 2.0])), jnp.array([0.5, 0.0]))
    ```
    """

    #: `(n,)`, arbitrary for free components
    value: Float[Array, "*batch n"]
    #: whether a component is fixed
    fixed: tuple[bool, ...] = eqx.field(static=True)
    #: `condition(x) -> (rows,)`, zero at the boundary; or None
    condition: StateFunction | None = None

    @property
    def is_free(self) -> bool:
        """True without any condition."""
        return not any(self.fixed) and self.condition is None

    @property
    def rows(self) -> list[int]:
        """Indices of the fixed components."""
        return [k for k, f in enumerate(self.fixed) if f]

    def residual(self, x) -> Float[Array, " rows"]:
        """Residual at the states, or controls, x: fixed components first, then the condition."""
        rows = np.array(self.rows, int)
        fixed = x[rows] - self.value[rows].astype(x.dtype)
        if self.condition is None:
            return fixed
        return jnp.concatenate([fixed, jnp.atleast_1d(self.condition(x)).astype(x.dtype)])


def partial(value, components: Sequence[int]) -> "_Partial":
    """A boundary condition on some components of the state, or of the controls.

    Arguments:

    * `value`: values `(n,)` of the components.
    * `components`: their n indices.

    Returns a value for the arguments `start`, `end`, `start_control` and `end_control` of `Problem`.

    ```python
    import jax.numpy as jnp

    from jaxdyn.trajopt import Problem, VectorField, partial

    field = VectorField(lambda t, x, u, p: jnp.stack([x[1], u[0]]), ("position", "velocity"), ("force",))
    problem = Problem(field, 1.0, start=jnp.zeros(2), end=partial([3.0], [1]))  # any position, velocity 3
    assert problem.end.fixed == (False, True)
    ```
    """
    return _Partial(jnp.asarray(value, float), tuple(int(k) for k in components))


class _Partial(eqx.Module):
    value: Array
    components: tuple[int, ...] = eqx.field(static=True)


#: boundary conditions as `Problem` takes them
BoundaryLike = Boundary | _Partial | StateFunction | ArrayLike | Sequence[ArrayLike] | None


def as_boundary(name: str, condition: BoundaryLike, n: int, dtype) -> Boundary:
    """The boundary of n components for the argument `name` of `Problem`."""
    if isinstance(condition, Boundary):
        return condition
    free = jnp.zeros(n, dtype)
    if condition is None:
        return Boundary(free, (False,) * n)
    if isinstance(condition, _Partial):
        if condition.value.shape != (len(condition.components),):
            raise ShapeError(
                f"{name}: {len(condition.components)} components, but values of shape {condition.value.shape}; "
                "expected as many values as components"
            )
        at = np.array(condition.components, int)
        return Boundary(
            free.at[at].set(condition.value.astype(dtype)), tuple(k in condition.components for k in range(n))
        )
    if callable(condition) and not hasattr(condition, "shape"):
        return Boundary(free, (False,) * n, as_function(condition))
    value = jnp.asarray(condition, dtype)
    if value.shape != (n,):
        raise ShapeError(
            f"{name} has shape {value.shape}, expected ({n},); to fix some components only use "
            "jaxdyn.trajopt.partial(values, components)"
        )
    return Boundary(value, (True,) * n)
