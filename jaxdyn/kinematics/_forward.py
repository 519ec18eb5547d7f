"""Forward kinematics: where all links are."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._numerics import kernel
from jaxdyn._types import Array, Config, Float
from jaxdyn.model import Model, Topology
from jaxdyn.model import _recursion as rc
from jaxdyn.model._bodies import Bodies, bodies, link_placements
from jaxdyn.model._mimic import full_configuration
from jaxdyn.spatial import Pose


class Poses(eqx.Module):
    """Poses of all links in the world, one row a link in the order of `Model.link_names`; `[name]` is one."""

    rotation: Float[Array, "*batch links 3 3"]
    translation: Float[Array, "*batch links 3"]
    link_names: tuple[str, ...] = eqx.field(static=True)

    def __getitem__(self, name: str) -> Pose:
        """The pose of the link called `name`."""
        if name not in self.link_names:
            raise ModelError(f"no link is called {name!r}; there are {', '.join(self.link_names)}")
        i = self.link_names.index(name)
        return Pose(self.rotation[..., i, :, :], self.translation[..., i, :])


def _stack(r, p):
    return jnp.stack([jnp.stack(row, axis=1) for row in r], axis=1), jnp.stack(p, axis=1)


@kernel
def _link_poses(t: Topology, b: Bodies, offset_r, offset_p, q):
    """World poses of all links; offsets are those of `link_placements`."""
    lanes = rc.lanes_of(q, b.rotation, b.translation, offset_r, offset_p)
    r, p, _ = rc.poses(t, b, q, lanes, travelling=False)
    if len(t.bodies) == len(t.parents):
        return _stack(r, p)
    fixed = np.array([g < 0 for g in t.groups])[:, None]
    rows = np.array(t.body_of_link) % (len(t.bodies) + 1)  # the last row is the world
    place = lambda x, home: jnp.take(jnp.concatenate([x, jnp.full_like(x[:1], home)]), rows, axis=0)
    body_r = tuple(tuple(place(r[i][j], float(i == j)) for j in range(3)) for i in range(3))
    body_p = tuple(place(x, 0.0) for x in p)
    own_r = tuple(tuple(jnp.where(fixed, offset_r[:, i, j], float(i == j)) for j in range(3)) for i in range(3))
    own_p = tuple(jnp.where(fixed, offset_p[:, i], 0.0) for i in range(3))
    return _stack(*rc.chain((body_r, body_p), (own_r, own_p)))


def forward_kinematics(model: Model, q: Config) -> Poses:
    """Poses of all links in the world, `T_0i = T_0p(i) T_pi(q_i)`, those behind fixed joints included.

    `poses["name"]` is the pose of one link; `poses.rotation` `(links, 3, 3)` and `poses.translation`
    `(links, 3)`, in m, are stacked in the order of `model.link_names`. Featherstone 2008, section 4.4.
    """
    q = check_shape("q", q, (model.nq,))
    t = model.topology
    offsets = placed_links(model)
    if not t.bodies:
        return Poses(offsets[0], offsets[1], model.link_names)
    rotation, translation = _link_poses(t, bodies(model), *offsets, full_configuration(model, q))
    return Poses(rotation, translation, model.link_names)


def placed_links(model: Model):
    """`link_placements` of a model, which may be empty."""
    if not model.link_names:
        return jnp.zeros((0, 3, 3), model.dtype), jnp.zeros((0, 3), model.dtype)
    return link_placements(model.topology, model.placements.rotation, model.placements.translation)


@kernel
def _body_pose(t: Topology, b: Bodies, q):
    lanes = rc.lanes_of(q, b.rotation, b.translation)
    r, p, _ = rc.poses(t, b, q, lanes, travelling=False)
    return _stack(r, p)


def body_poses(model: Model, q):
    """Rotations `(nb, 3, 3)` and positions `(nb, 3)` of the moving bodies in the world."""
    return _body_pose(model.topology, bodies(model), full_configuration(model, q))
