"""A surface defined by a function."""

from collections.abc import Callable

import equinox as eqx
import jax

from jaxdyn._errors import ShapeError
from jaxdyn._numerics import as_function
from jaxdyn._types import Array
from jaxdyn.contact.geometry._contract import AbstractSurface
from jaxdyn.contact.geometry._projection import project
from jaxdyn.contact.geometry._search import circle, nearest_point, segment


class ImplicitSurface(AbstractSurface):
    """The surface `phi(p) = 0`, with p in axes of its frame, m; the body fills the points with negative phi.

    phi returns a scalar with a non-zero gradient on the surface. It is smooth: order n derivatives of the motion take
    order n + 2 derivatives of phi. It need not be a distance: points are projected onto the surface by a Newton
    iteration, so that the gap is the Euclidean distance. Beyond a centre of curvature, or where the
    iteration does not converge, the distance is `phi / |grad phi|`, which has the right sign. Where the gradient
    vanishes, the distance is phi and the normal is the z axis. A function with parameters should be an
    `equinox.Module`, so that they are leaves.

    ```python
    import jax.numpy as jnp
    import jaxdyn.contact as ct

    bowl = ct.ImplicitSurface(lambda p: p[2] - 2 * (p[0] ** 2 + p[1] ** 2))
    distance, normal = bowl.distance_and_normal(jnp.array([0.0, 0.0, 0.1]))
    assert abs(distance - 0.1) < 1e-6 and jnp.allclose(normal, jnp.array([0.0, 0.0, 1.0]))
    ```
    """

    phi: Callable[[Array], Array] = eqx.field(converter=as_function)

    def distance_and_normal(self, p):
        if (shape := jax.eval_shape(self.phi, p).shape) != ():
            raise ShapeError(f"phi of an ImplicitSurface returned shape {shape}, expected (); return a scalar")
        return project(self.phi, p)

    def nearest_on_segment(self, start, end):
        return nearest_point(self, segment(start, end))

    def nearest_on_circle(self, centre, first, second, radius):
        return nearest_point(self, circle(centre, first, second, radius))
