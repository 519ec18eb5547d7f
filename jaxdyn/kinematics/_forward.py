"""Forward kinematics: poses of all links."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Config, Float
from jaxdyn.model import Model, Topology
from jaxdyn.recursion import (
    Bodies,
    TreeState,
    bodies,
    check_state,
    compose_poses,
    expand_to_links,
    full_configuration,
    link_offsets,
    stack_pose,
)
from jaxdyn.spatial import Pose


class Poses(eqx.Module):
    """Poses of all links in the world, one row per link in the order of `Model.link_names`; `[name]` selects one."""

    rotation: Float[Array, "*batch links 3 3"]
    translation: Float[Array, "*batch links 3"]
    link_names: tuple[str, ...] = eqx.field(static=True)

    def __getitem__(self, name: str) -> Pose:
        """The pose of the link called `name`."""
        if name not in self.link_names:
            raise ModelError(f"no link is called {name!r}; there are {', '.join(self.link_names)}")
        i = self.link_names.index(name)
        return Pose(self.rotation[..., i, :, :], self.translation[..., i, :])


@kernel
def _link_poses(t: Topology, b: Bodies, offset_r, offset_p, q):
    """World poses of all links; the offsets are those of `link_placements`."""
    r, p = TreeState(t, b, q, None, None, offset_r, offset_p, travelling=False).poses()
    if len(t.bodies) == len(t.parents):
        return stack_pose(r, p)
    fixed = np.array([g < 0 for g in t.groups])[:, None]
    body_r = tuple(tuple(expand_to_links(t, r[i][j], float(i == j)) for j in range(3)) for i in range(3))
    body_p = tuple(expand_to_links(t, x) for x in p)
    placed_r = tuple(tuple(jnp.where(fixed, offset_r[:, i, j], float(i == j)) for j in range(3)) for i in range(3))
    placed_p = tuple(jnp.where(fixed, offset_p[:, i], 0.0) for i in range(3))
    return stack_pose(*compose_poses((body_r, body_p), (placed_r, placed_p)))


def forward_kinematics(model: Model, q: Config) -> Poses:
    """Poses of all links in the world, `T_0i = T_0p(i) T_pi(q_i)` (Featherstone 2008, section 4.4).

    Arguments:

    * `model`: the robot
    * `q`: configuration, `(nq,)`

    Returns `Poses`: `rotation` `(links, 3, 3)` and `translation` `(links, 3)`, in m, in the order of
    `model.link_names`, links behind fixed joints included. `poses["name"]` is the `Pose` of one link. For a frame, or
    one link alone, use `frame_pose`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    model = jd.robots.double_pendulum()
    poses = jd.forward_kinematics(model, jnp.array([0.1, 0.2]))
    position = poses[model.link_names[-1]].translation
    ```
    """
    (q,) = check_state(model, q=q)
    t = model.topology
    offsets = link_offsets(model)
    if not t.bodies:
        return Poses(offsets[0], offsets[1], model.link_names)
    rotation, translation = _link_poses(t, bodies(model), *offsets, full_configuration(model, q))
    return Poses(rotation, translation, model.link_names)
