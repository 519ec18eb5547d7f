"""Poses of all links as matrix products along the tree, from which energies and velocities are differentiated.

`jaxdyn.forward_kinematics` computes the same poses with an unrolled program that runs faster. The program here is
short, so that its second and third derivatives compile in a third of the time.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.model import Model
from jaxdyn.recursion import full_configuration, link_offsets, link_poses, sweep_down


@eqx.filter_jit  # the loop of the sweep would be compiled at every call outside of a compiled function
def poses(model: Model, q):
    """Rotations `(links, 3, 3)` and positions `(links, 3)` in the world, `T_j = T_p(j) H_j J_j(q_j)`.

    H is the pose of the joint in the parent body, J the motion of the joint.
    """
    t = model.topology
    rotation, translation = link_offsets(model)
    world = jnp.eye(3, dtype=q.dtype), jnp.zeros(3, q.dtype)
    if not t.bodies:
        return rotation, translation

    def step(before, x):
        (R, p), (A, a, J, j) = before, x
        pose = R @ A @ J, p + R @ (a + A @ j)
        return pose, pose

    rows = np.array(t.bodies)
    R, p = sweep_down(t.body_slots, step, world, (rotation[rows], translation[rows], *_joint_motions(model, q)))
    return link_poses(model, R, p)


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
