"""The first step of every kernel: the joints of a tree evaluated at a state."""

import jax.numpy as jnp

from jaxdyn.recursion._bodies import Bodies
from jaxdyn.recursion._joint_states import joint_states, to_dofs
from jaxdyn.recursion._steps import (
    compose_poses,
    gravity_state,
    has_translating_joints,
    joint_motion,
    joint_rates,
    lanes_of,
    relative_poses,
    root_state,
    to_world,
    zero6,
)
from jaxdyn.recursion._sweep import sweep_down
from jaxdyn.recursion._topology import Topology


class TreeState:
    """All joints evaluated at `(q, v, a)`, in components over lanes (the samples of a batch).

    Arguments:

    * `q`: full configuration, `(full_nq, lanes)`.
    * `v`, `a`: full velocity and acceleration, `(full_nv, lanes)`, or None.
    * `others`: further arguments of the kernel, which take part in the number of lanes and in the precision.
    * `travelling`: keep root bodies at the origin, which then travels with the robot (see `_steps`).
    """

    def __init__(self, topology: Topology, bodies: Bodies, q, v=None, a=None, *others, travelling: bool = True):
        arrays = [x for x in (q, v, a, bodies.translation, bodies.rotation, *others) if x is not None]
        #: number of lanes that all arrays broadcast to
        self.lanes = lanes_of(*arrays)
        self.dtype = jnp.result_type(*arrays)
        self.topology, self.bodies = topology, bodies
        #: pose of each child frame in its joint frame; the translation is None if no joint translates
        self.rotation, self.translation, self.subspace, self.bias = joint_states(topology, bodies.joints, q, v)
        #: pose of each child frame in the parent body
        self.local = relative_poses(topology, bodies, self.rotation, self.translation, travelling=travelling)
        #: `S v` and `S a + Sdot v` of each joint, in child axes
        self.rate, self.acceleration = (None, None)
        if v is not None:
            self.rate, self.acceleration = joint_rates(topology, self.subspace, self.bias, v, a)

    def root_pose(self):
        """Pose of the world, the identity."""
        return root_state(self.lanes, self.dtype)

    def zero(self):
        """The six-vector zero."""
        return zero6(self.lanes, self.dtype)

    def gravity(self):
        """Acceleration `-g` of the world, which replaces gravity."""
        return gravity_state(self.bodies, self.lanes, self.dtype)

    def motion(self, rate):
        """`S rate` of each joint, in child axes."""
        return joint_motion(self.topology, self.subspace, rate)

    def poses(self):
        """Poses `(R, p)` of all bodies in world axes."""

        def step(parent, x):
            state = compose_poses(parent, x)
            return state, state

        return sweep_down(self.topology.body_slots, step, self.root_pose(), self.local)

    def world_subspace(self, r, p):
        """Motion subspaces in world axes, over degrees of freedom, for the poses `(r, p)` of the bodies."""
        t = self.topology
        rd = tuple(tuple(to_dofs(t, x) for x in row) for row in r)
        pd = tuple(to_dofs(t, x) for x in p)
        return to_world(rd, pd, self.subspace if has_translating_joints(t) else (self.subspace[0], None))
