"""Array types of public signatures."""

from collections.abc import Callable

from jaxtyping import Array as Array
from jaxtyping import Bool as Bool
from jaxtyping import Float as Float
from jaxtyping import Int as Int
from jaxtyping import PyTree as PyTree

Scalar = Float[Array, ""]
Vec3 = Float[Array, "3"]
Vec4 = Float[Array, "4"]
Vec6 = Float[Array, "6"]
Mat3 = Float[Array, "3 3"]
Config = Float[Array, " nq"]
Velocity = Float[Array, " nv"]
Effort = Float[Array, " nv"]
MassMatrix = Float[Array, "nv nv"]
#: a control law `(t, q, v) -> (nv,)`
Law = Callable[[Scalar, Config, Velocity], Effort]
