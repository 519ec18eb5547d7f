"""The toolkit of the tree recursions: topology, sweeps, moving bodies, evaluated joints, mimic joints.

Words that this folder defines and the dynamics use:

* *lanes*: the samples of a batch, the last axis of every array in a kernel (`jaxdyn._numerics.kernel`); an array that
  all samples share has one lane. `components` is vector algebra on tuples of such arrays.
* *bodies*: the links behind moving joints, each merged with the links that are rigidly attached to it. Featherstone's
  recursions run over bodies; links behind fixed joints never enter them.
* *groups*: the joints of one type (and parameter shape), stacked in one entry of `Model.joints` and evaluated by one
  call. *Runs* are maximal sequences of consecutive bodies of one group.
* *slots*: the places in a sweep's carry that store the state of a branching body until its last child is visited.
* *full* coordinates: those of all joints, mimic joints included; the state has only the independent ones.
"""

from jaxdyn.recursion import components as components
from jaxdyn.recursion._bodies import Bodies as Bodies
from jaxdyn.recursion._bodies import bodies as bodies
from jaxdyn.recursion._bodies import dof_carries_link as dof_carries_link
from jaxdyn.recursion._bodies import link_placements as link_placements
from jaxdyn.recursion._body_states import BodyStates as BodyStates
from jaxdyn.recursion._body_states import body_poses as body_poses
from jaxdyn.recursion._body_states import body_states as body_states
from jaxdyn.recursion._body_states import link_offsets as link_offsets
from jaxdyn.recursion._checks import check_model as check_model
from jaxdyn.recursion._checks import check_state as check_state
from jaxdyn.recursion._checks import check_wrenches as check_wrenches
from jaxdyn.recursion._joint_states import joint_states as joint_states
from jaxdyn.recursion._joint_states import joint_tangents as joint_tangents
from jaxdyn.recursion._joint_states import place_at_last_dof as place_at_last_dof
from jaxdyn.recursion._joint_states import to_bodies as to_bodies
from jaxdyn.recursion._joint_states import to_dofs as to_dofs
from jaxdyn.recursion._links import expand_to_links as expand_to_links
from jaxdyn.recursion._links import link_poses as link_poses
from jaxdyn.recursion._mimic import full_configuration as full_configuration
from jaxdyn.recursion._mimic import full_velocity as full_velocity
from jaxdyn.recursion._mimic import reduce_columns as reduce_columns
from jaxdyn.recursion._mimic import reduce_effort as reduce_effort
from jaxdyn.recursion._mimic import reduce_inertial_effort as reduce_inertial_effort
from jaxdyn.recursion._mimic import reduce_mass_matrix as reduce_mass_matrix
from jaxdyn.recursion._steps import accelerate as accelerate
from jaxdyn.recursion._steps import apply_inertia as apply_inertia
from jaxdyn.recursion._steps import body_force as body_force
from jaxdyn.recursion._steps import compose_poses as compose_poses
from jaxdyn.recursion._steps import gravity_state as gravity_state
from jaxdyn.recursion._steps import has_translating_joints as has_translating_joints
from jaxdyn.recursion._steps import inertia_to_world as inertia_to_world
from jaxdyn.recursion._steps import inertial_components as inertial_components
from jaxdyn.recursion._steps import inertial_moments as inertial_moments
from jaxdyn.recursion._steps import joint_motion as joint_motion
from jaxdyn.recursion._steps import joint_rates as joint_rates
from jaxdyn.recursion._steps import lanes_of as lanes_of
from jaxdyn.recursion._steps import project_wrench as project_wrench
from jaxdyn.recursion._steps import relative_poses as relative_poses
from jaxdyn.recursion._steps import root_state as root_state
from jaxdyn.recursion._steps import six_columns as six_columns
from jaxdyn.recursion._steps import stack6 as stack6
from jaxdyn.recursion._steps import stack_pose as stack_pose
from jaxdyn.recursion._steps import to_world as to_world
from jaxdyn.recursion._steps import zero6 as zero6
from jaxdyn.recursion._sweep import sweep_down as sweep_down
from jaxdyn.recursion._sweep import sweep_up as sweep_up
from jaxdyn.recursion._topology import Slots as Slots
from jaxdyn.recursion._topology import Topology as Topology
from jaxdyn.recursion._topology import ancestor_mask as ancestor_mask
from jaxdyn.recursion._tree import TreeModel as TreeModel
from jaxdyn.recursion._tree_state import TreeState as TreeState
from jaxdyn.recursion._wrenches import body_wrenches as body_wrenches
