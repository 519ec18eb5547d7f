"""Natural frequencies and mode shapes."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._errors import check_shape
from jaxdyn._numerics import generalised_eigen
from jaxdyn._types import Array, Config, Float, Scalar
from jaxdyn.dynamics._crba import mass_matrix
from jaxdyn.dynamics._rnea import gravity_forces
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model import Model
from jaxdyn.recursion import check_state

Energy = Callable[[Model, Config], Scalar]


class Modes(NamedTuple):
    """Modes of small free motions, in the order of their eigenvalues."""

    #: `w^2`, rad^2/s^2; negative where the configuration is unstable
    eigenvalues: Float[Array, " nv"]
    #: w, rad/s; zero for rigid-body modes, negative (`-sqrt(-w^2)`) for unstable ones
    frequencies: Float[Array, " nv"]
    #: velocities of the modes as columns, `X^T M X = 1`; the entry of largest magnitude of each is positive
    shapes: Float[Array, "nv nv"]


def stiffness_matrix(
    model: Model, q: Float[Array, " nq"], *, energies: Sequence[Energy] = (), gravity: bool = True
) -> Float[Array, "nv nv"]:
    """Stiffness matrix at q along the velocity coordinates, `(nv, nv)`, symmetric: the Hessian of the potential energy.

    `K = d^2 U(q (+) d) / d d^2` at `d = 0`, with the springs of the joints (`properties.stiffness`), gravity if
    `gravity`, and the energies given by functions `(model, q) -> J`, such as `part.potential_energy` of an elastic
    transmission. At an equilibrium, `-K d` is the restoring effort of a small displacement d.
    """
    (q,) = check_state(model, q=q)
    p, still = model.properties, jnp.zeros(model.nv, q.dtype)

    def effort(d):
        moved = integrate(model, q, d)
        springs = p.stiffness * difference(model, p.rest, moved)
        return springs + gravity_forces(model, moved) if gravity else springs

    # `integrate` moves along one-parameter subgroups: the Hessian is the symmetric part of the slope of the efforts
    slope = jax.jacfwd(effort)(still)
    total = (slope + slope.T) / 2
    for function in energies:
        total = total + jax.hessian(lambda d: function(model, integrate(model, q, d)))(still)  # noqa: B023
    return total


def modes(
    model: Model,
    q: Float[Array, " nq"],
    *,
    stiffness: Float[Array, "nv nv"] | None = None,
    energies: Sequence[Energy] = (),
    gravity: bool = True,
) -> Modes:
    """Natural frequencies and mode shapes of small free motions about the configuration q, `K x = w^2 M(q) x`.

    K is `stiffness_matrix(model, q, energies=energies, gravity=gravity)` plus `stiffness`. Inertias that parts bring
    are in M if the model is mounted, `part.mount(model)`. Damping is neglected.

    Derivatives are exact, for repeated frequencies as well wherever they exist: those of sums over the modes of a
    repeated frequency, and of anything that does not depend on the choice of its mode shapes. Eigenvalues that are
    zero up to rounding have the frequency zero with derivative zero.

    Arguments:

    * `model`, `q`: the robot and a configuration, `(nq,)`, usually an equilibrium
    * `stiffness`: further stiffness on the velocity coordinates, symmetric, `(nv, nv)`
    * `energies`: functions `(model, q) -> J` whose Hessians are added
    * `gravity`: whether gravity adds its stiffness

    Returns `Modes`. Without inertia the mass matrix is singular and the results are NaN.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    pendulum = jd.robots.pendulum()
    assert jnp.allclose(jd.modes(pendulum, jnp.zeros(1)).frequencies, jnp.sqrt(9.81), rtol=1e-5)  # rad/s
    ```
    """
    (q,) = check_state(model, q=q)
    total = stiffness_matrix(model, q, energies=energies, gravity=gravity)
    if stiffness is not None:
        total = total + check_shape("stiffness", stiffness, (model.nv, model.nv))
    eigenvalues, shapes = generalised_eigen(total, mass_matrix(model, q))
    return Modes(eigenvalues, _frequencies(eigenvalues), shapes)


def _frequencies(eigenvalues):
    rounding = 64 * eigenvalues.size * jnp.finfo(eigenvalues.dtype).eps * jnp.max(jnp.abs(eigenvalues), initial=0)
    is_zero = jnp.abs(eigenvalues) <= jax.lax.stop_gradient(rounding)
    root = jnp.sqrt(jnp.abs(jnp.where(is_zero, 1, eigenvalues)))
    return jnp.where(is_zero, 0, jnp.sign(eigenvalues) * root)
