"""The reduced kinetic model of flexible robots: deformations are zero in the kinetic energy (section 5 of Celentano).

L. Celentano, "An Innovative Method for Robots Modeling and Simulation", in "New Approaches in Automation and
Robotics", I-Tech 2008, equations 65 and 66. Elastic torques are `-K beta` in the momentum equation; equation 69 of the
source lists `+K beta`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._types import Array, Float
from jaxdyn.formulations._formulation import AbstractFormulation, external_efforts, find_quasi_velocity_joint
from jaxdyn.formulations._momentum_equation import (
    ExactGradient,
    inertia_matrix,
    kinetic_energy_gradient,
    potential_energy_gradient,
)
from jaxdyn.model import Model


class NeglectedDeformation(AbstractFormulation):
    """`d/dt (B v) = c - dU/dq + u + J^T external` with deformations set to zero in B, c, U and J (65, 66).

    B is the mass matrix at the angles of motion and zero deformation, `c_l = v . dB/dq_l v / 2` for the angles of
    motion and zero for deformations; rates of deformation and elastic forces are kept. For one flexible link on a
    hinge, B is constant.

    **Limitation.** The centrifugal stiffening of a turning link is a second-order effect of the deformation and is
    neglected: the frequencies of a link that turns do not rise with the speed, and deflections in a spin-up are too
    large. Use the default dynamics where `(Omega / omega_1)^2` is not small, with the speed Omega and the first
    frequency omega_1. Covers joints with `v = qdot`.

    Arguments: `deformations`, the names of the joints whose coordinates are deformations, `FlexibleLink.joint_names`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.formulations import NeglectedDeformation

    arm = jd.robots.double_pendulum()
    method = NeglectedDeformation(arm.joint_names[1:])
    straight, bent = jnp.array([0.3, 0.0]), jnp.array([0.3, 0.2])
    assert jnp.allclose(method.mass_matrix(arm, bent), jd.mass_matrix(arm, straight))
    ```
    """

    deformations: tuple[str, ...] = eqx.field(static=True, converter=tuple)

    def covers(self, model):
        unknown = [name for name in self.deformations if name not in model.joint_names]
        if unknown:
            return f"it has no joint called {unknown[0]!r}, which is given as a deformation"
        return find_quasi_velocity_joint(model)

    def mass_matrix(self, model: Model, q: Float[Array, " nq"]):
        (q,) = self.checked(model, q)
        return inertia_matrix(model, q * self._motion(model))

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        return self.inverse_dynamics(model, q, v, jnp.zeros_like(v))

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        motion = self._motion(model)
        q = q * motion
        _, momentum_rate = jax.jvp(lambda q, v: inertia_matrix(model, q) @ v, (q, v), (v * motion, a))
        gradient = motion * kinetic_energy_gradient(model, q, v, ExactGradient()) - potential_energy_gradient(model, q)
        return momentum_rate - gradient - external_efforts(model, q, external)

    def _motion(self, model: Model) -> np.ndarray:
        """One for the coordinates of motion, zero for deformations; joints with `v = qdot` have `nq = nv`."""
        mask = np.ones(model.nv)
        for name in self.deformations:
            mask[model.joint(name).v] = 0
        return mask
