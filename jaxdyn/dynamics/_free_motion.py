"""Free motion of a tree, the motion of a system without constraints."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import ModelError
from jaxdyn._numerics import as_function, is_concrete
from jaxdyn._types import Velocity
from jaxdyn.dynamics._crba import mass_matrix
from jaxdyn.dynamics._forward_dynamics import forward_dynamics
from jaxdyn.dynamics._rnea import rnea
from jaxdyn.dynamics.contract import AbstractMotion, Action
from jaxdyn.model import Model


def joints_without_inertia(model: Model) -> list[str]:
    """Joints of which neither the links behind them nor their armatures have inertia; none where these are traced."""
    numbers = model.links.mass, model.links.inertia, model.properties.armature
    if not is_concrete(numbers):
        return []
    mass, inertia, armature = (np.asarray(x) for x in numbers)
    has_inertia = (mass != 0) | (inertia != 0).any((-2, -1))
    parents = np.asarray(model.topology.parents)
    for k in reversed(range(len(parents))):  # parents come first
        if parents[k] >= 0:
            has_inertia[parents[k]] |= has_inertia[k]
    views = [model.joint(name) for name in model.joint_names]
    mimics = {follower for follower, _ in model.topology.mimics}
    return [
        name
        for name, view in zip(model.joint_names, views, strict=True)
        if view.index not in mimics and not has_inertia[view.index] and (armature[view.v] == 0).any()
    ]


class FreeMotion(AbstractMotion):
    """Motion of the tree without constraints: `M(q) a + h(q, v) = effort + J^T external`.

    `method` is the algorithm that `forward_dynamics` takes: a function, or a formulation of `jaxdyn.formulations`,
    whose numbers are leaves; None takes the default. Functions are compared by identity: define them at module level
    to avoid recompilation.

    ```python
    import jaxdyn as jd
    from jaxdyn.dynamics import FreeMotion

    model = jd.robots.pendulum()
    system = jd.System(model, motion=FreeMotion(method=jd.crba_solve))
    ```
    """

    method: Callable[..., Velocity] | None = eqx.field(converter=as_function, default=None)
    projects: bool = eqx.field(static=True, default=False, init=False)
    adds_constraints: bool = eqx.field(static=True, default=False, init=False)

    def check(self, model):
        # a formulation states which models it covers, a plain function does not
        covers = getattr(self.method, "covers", None)
        reason = covers(model) if callable(covers) else None
        if reason is not None:
            raise ModelError(
                f"{type(self.method).__name__}, the method of this motion, does not cover this model: {reason}; omit "
                "the method, or choose one that covers the model, such as jaxdyn.formulations.Lagrange()"
            )
        joints = joints_without_inertia(model)
        if joints:
            raise ModelError(
                f"joints {joints} move neither mass nor inertia, so that the mass matrix is singular; give their links "
                "a mass, the joints an armature, the shaft of a transmission an inertia, or the motor that drives it a "
                "rotor_inertia"
            )

    def acceleration(self, model, t, q, v, effort, external):
        return forward_dynamics(model, q, v, effort, external, method=self.method)

    def residual(self, model, t, q, v, a, effort, external):
        return rnea(model, q, v, a, external) - effort

    @property
    def has_affine_residual(self) -> bool:
        return self.method is None

    def velocity(self, model, t, q, v):
        return v

    def project(self, model, t, q, v):
        return q, v

    def exerted(self, model, t, q, v, effort, external):
        return Action()

    def violates_constraints(self, model, t, q, v):
        return jnp.zeros((), bool)

    def jump(self, model, t, q, impulse):
        return cho_solve(cho_factor(mass_matrix(model, q)), impulse)
