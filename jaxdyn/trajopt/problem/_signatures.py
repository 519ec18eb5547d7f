"""Signatures of the functions that define a problem."""

from collections.abc import Callable

from jax.typing import ArrayLike

from jaxdyn._types import Array, Float, Scalar

#: a function `x -> (rows,)` of the states, or of the controls
StateFunction = Callable[[Array], ArrayLike]
#: a function `(t, x, u) -> (rows,)`, or a number
PointFunction = Callable[[Scalar, Float[Array, " nx"], Float[Array, " nu"]], ArrayLike]
#: a function `(T, x) -> number`
FinalFunction = Callable[[Scalar, Float[Array, " nx"]], ArrayLike]
#: a function `(x0, xT) -> (rows,)`
CouplingFunction = Callable[[Float[Array, " nx"], Float[Array, " nx"]], ArrayLike]
