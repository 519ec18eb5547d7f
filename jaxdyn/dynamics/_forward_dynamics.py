"""Forward dynamics: accelerations under given efforts."""

from collections.abc import Callable

from jaxdyn._types import Array, Float
from jaxdyn.dynamics._aba import aba
from jaxdyn.dynamics._crba import crba_solve
from jaxdyn.model import Model
from jaxdyn.recursion import check_model


def forward_dynamics(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    method: Callable | None = None,
) -> Float[Array, " nv"]:
    """Forward dynamics: `a = M(q)^-1 (tau - h(q, v) + sum J^T f_ext)`.

    Damping, friction and springs of the joints do not act here: add `passive_forces` to tau, or use `jaxdyn.step` and
    `jaxdyn.simulate`, in which everything acts.

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`
    * `v`: velocity, `(nv,)`, rad/s or m/s
    * `tau`: efforts, `(nv,)`, N m or N
    * `external`: wrenches (moment, force) on the links, `(num_links, 6)`, in link axes about the link's origin, or None
    * `method`: a function or formulation with these arguments, by default `aba`, or `crba_solve` if joints mimic others

    Returns the accelerations, `(nv,)`, rad/s^2 or m/s^2. Armatures are included. Arrays of a wrong shape raise
    `ShapeError`.

    The derivative of `aba` is implicit, `da = M^-1 (dtau - d rnea)`: a gradient with respect to all leaves costs one
    solve and one pullback of `rnea`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    q, v = jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5])
    a = jd.forward_dynamics(model, q, v, jnp.zeros(2))
    ```
    """
    check_model(model)
    if method is None:
        method = crba_solve if model.topology.mimics else aba
    return method(model, q, v, tau, external)
