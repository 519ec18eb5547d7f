"""Structural damping by ratios of the modes of flexible links."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, format_names
from jaxdyn._numerics import as_float, generalised_eigen
from jaxdyn._types import Array, Float
from jaxdyn.dynamics import AbstractPart, Action, mass_matrix
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Model


class ModalDamping(AbstractPart):
    """Damping of flexible links by damping ratios of their modes, as vibration tests measure them.

    With the mass matrix M and the spring stiffnesses K of the elastic joints in the undeformed links, the other joints
    at rest, and the modes `K X = M X w^2`, `X^T M X = 1`, the part exerts `-M X diag(2 zeta w) X^T M v` on them. With
    the retardation time of a material the damping ratio is proportional to the frequency; here high modes need not be
    damped more than low ones.

    The modes are those with payloads and in the configuration of the other joints, so that each evaluation costs an
    eigenvalue problem in the elastic coordinates.

    Arguments:

    * `joints`: names of the elastic joints of one or more links, `FlexibleLink.joint_names`
    * `ratio`: zeta, one number, or one for each mode in the order of the frequencies

    ```python
    import jaxdyn as jd
    from jaxdyn.beams import Beam, Material, Round
    from jaxdyn.flexible import ModalDamping, Strains, add_flexible_link

    builder = jd.ModelBuilder()
    rod = Beam(Round(0.005), Material.steel(), 0.8)
    part = add_flexible_link(builder, "arm", beam=rod, sublinks=4, strains=Strains.planar())
    system = jd.System(builder.build(), (part, ModalDamping(part.joint_names, 0.01)))
    ```
    """

    joints: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    ratio: Float[Array, "*modes"] = eqx.field(converter=as_float)

    def initial(self, model, q, v):
        return None

    def act(self, model, t, q, v, state):
        in_q, in_v = self._places(model)
        undeformed = q.at[in_q].set(0)
        mass = mass_matrix(model, undeformed)[np.ix_(in_v, in_v)]
        eigenvalues, shapes = generalised_eigen(jnp.diag(model.properties.stiffness[in_v]), mass)
        momenta = mass @ shapes
        rates = momenta.T @ v[in_v]
        effort = -momenta @ (2 * self.ratio * jnp.sqrt(eigenvalues) * rates)
        return Action(jnp.zeros_like(v).at[in_v].set(effort))

    def _places(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        views = [model.joint(name) for name in self.joints]
        wrong = [view.name for view in views if not has_vector_rate(view.joint)]
        if wrong or not views:
            raise ModelError(
                f"ModalDamping: the joints {format_names(wrong)} have quaternions; expected the elastic joints of "
                "flexible links, FlexibleLink.joint_names"
            )
        as_indices = lambda slices: np.concatenate([np.arange(x.start, x.stop) for x in slices])
        return as_indices([view.q for view in views]), as_indices([view.v for view in views])
