"""Where all links are, as products of matrices along the tree: what energies and velocities are differentiated from.

`jaxdyn.forward_kinematics` gives the same poses from a program that is unrolled to run fast. This one is short, so that
its second and third derivatives compile in a third of the time, and shares nothing with it but the joints.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.kinematics._forward import placed_links
from jaxdyn.model import Model
from jaxdyn.model._mimic import full_configuration
from jaxdyn.model._sweep import sweep_down


def poses(model: Model, q):
    """Rotations `(links, 3, 3)` and positions `(links, 3)` in the world, `T_j = T_p(j) H_j J_j(q_j)`.

    H is the pose of the joint in the body before, J the motion of the joint. What is fixed to a body is placed in it.
    """
    t = model.topology
    rotation, translation = placed_links(model)
    world = jnp.eye(3, dtype=q.dtype), jnp.zeros(3, q.dtype)
    if not t.bodies:
        return rotation, translation

    def step(before, x):
        (R, p), (A, a, J, j) = before, x
        pose = R @ A @ J, p + R @ (a + A @ j)
        return pose, pose

    rows = np.array(t.bodies)
    R, p = sweep_down(t.body_slots, step, world, (rotation[rows], translation[rows], *_joint_motions(model, q)))
    if len(t.bodies) == len(t.parents):
        return R, p
    carrier = np.array(t.body_of_link) % (len(t.bodies) + 1)  # the last row is the world
    R, p = (jnp.concatenate([x, home[None]])[carrier] for x, home in zip((R, p), world, strict=True))
    fixed = np.array([group < 0 for group in t.groups])
    turned = jnp.where(fixed[:, None, None], rotation, world[0])
    return R @ turned, p + jnp.einsum("lij,lj->li", R, jnp.where(fixed[:, None], translation, 0))


def _joint_motions(model: Model, q):
    """Rotation and translation of each joint, in the order of `topology.bodies`."""
    t, q = model.topology, full_configuration(model, q)
    order: list[int] = []
    turns, slides = [], []
    for group, joint in enumerate(model.joints):
        bodies = [body for body, link in enumerate(t.bodies) if t.groups[link] == group]
        columns = np.array([t.q_start[body] for body in bodies])[:, None] + np.arange(t.group_sizes[group][0])
        turn, slide = jax.vmap(lambda joint, q: joint.transform(q))(joint, q[columns])
        turns.append(turn)
        slides.append(jnp.zeros((len(bodies), 3), turn.dtype) if slide is None else slide)
        order += bodies
    back = np.argsort(order)
    return jnp.concatenate(turns)[back], jnp.concatenate(slides)[back]
