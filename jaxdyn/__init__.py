"""jaxdyn: differentiable multibody dynamics in JAX.

A robot is a pytree whose leaves are its physical numbers. See `jaxdyn.model`, `jaxdyn.joints`,
`jaxdyn.kinematics` and `jaxdyn.dynamics`; the everyday names are here.
"""

from importlib.metadata import version as _version

from jaxdyn import joints as joints
from jaxdyn import robots as robots
from jaxdyn import spatial as spatial
from jaxdyn._errors import ConvergenceError as ConvergenceError
from jaxdyn._errors import JaxdynError as JaxdynError
from jaxdyn._errors import ModelError as ModelError
from jaxdyn._errors import ShapeError as ShapeError
from jaxdyn.dynamics import ForwardDynamicsDerivatives as ForwardDynamicsDerivatives
from jaxdyn.dynamics import InverseDynamicsDerivatives as InverseDynamicsDerivatives
from jaxdyn.dynamics import JointReactions as JointReactions
from jaxdyn.dynamics import TaskSpaceDynamics as TaskSpaceDynamics
from jaxdyn.dynamics import aba as aba
from jaxdyn.dynamics import bias_forces as bias_forces
from jaxdyn.dynamics import centroidal_momentum_matrix as centroidal_momentum_matrix
from jaxdyn.dynamics import centroidal_momentum_matrix_derivative as centroidal_momentum_matrix_derivative
from jaxdyn.dynamics import christoffel_symbols as christoffel_symbols
from jaxdyn.dynamics import coriolis_matrix as coriolis_matrix
from jaxdyn.dynamics import crba_solve as crba_solve
from jaxdyn.dynamics import forward_dynamics as forward_dynamics
from jaxdyn.dynamics import forward_dynamics_derivatives as forward_dynamics_derivatives
from jaxdyn.dynamics import gravity_forces as gravity_forces
from jaxdyn.dynamics import inertial_parameters as inertial_parameters
from jaxdyn.dynamics import inertial_regressor as inertial_regressor
from jaxdyn.dynamics import joint_reactions as joint_reactions
from jaxdyn.dynamics import kinetic_energy as kinetic_energy
from jaxdyn.dynamics import mass_matrix as mass_matrix
from jaxdyn.dynamics import momentum as momentum
from jaxdyn.dynamics import passive_forces as passive_forces
from jaxdyn.dynamics import potential_energy as potential_energy
from jaxdyn.dynamics import rnea as rnea
from jaxdyn.dynamics import rnea_derivatives as rnea_derivatives
from jaxdyn.dynamics import task_space_dynamics as task_space_dynamics
from jaxdyn.dynamics import work as work
from jaxdyn.kinematics import LOCAL as LOCAL
from jaxdyn.kinematics import WORLD as WORLD
from jaxdyn.kinematics import WORLD_ALIGNED as WORLD_ALIGNED
from jaxdyn.kinematics import AbstractReference as AbstractReference
from jaxdyn.kinematics import IKStatus as IKStatus
from jaxdyn.kinematics import InverseKinematics as InverseKinematics
from jaxdyn.kinematics import Poses as Poses
from jaxdyn.kinematics import center_of_mass as center_of_mass
from jaxdyn.kinematics import center_of_mass_jacobian as center_of_mass_jacobian
from jaxdyn.kinematics import center_of_mass_velocity as center_of_mass_velocity
from jaxdyn.kinematics import configuration_velocity as configuration_velocity
from jaxdyn.kinematics import difference as difference
from jaxdyn.kinematics import forward_kinematics as forward_kinematics
from jaxdyn.kinematics import frame_acceleration as frame_acceleration
from jaxdyn.kinematics import frame_classical_acceleration as frame_classical_acceleration
from jaxdyn.kinematics import frame_pose as frame_pose
from jaxdyn.kinematics import frame_velocity as frame_velocity
from jaxdyn.kinematics import integrate as integrate
from jaxdyn.kinematics import inverse_kinematics as inverse_kinematics
from jaxdyn.kinematics import jacobian as jacobian
from jaxdyn.kinematics import jacobian_derivative as jacobian_derivative
from jaxdyn.kinematics import neutral as neutral
from jaxdyn.kinematics import random_configuration as random_configuration
from jaxdyn.kinematics import total_mass as total_mass
from jaxdyn.model import Actuator as Actuator
from jaxdyn.model import Closure as Closure
from jaxdyn.model import Coupling as Coupling
from jaxdyn.model import JointProperties as JointProperties
from jaxdyn.model import Limits as Limits
from jaxdyn.model import Links as Links
from jaxdyn.model import Mimic as Mimic
from jaxdyn.model import Model as Model
from jaxdyn.model import ModelBuilder as ModelBuilder
from jaxdyn.model import Note as Note
from jaxdyn.model import Placements as Placements
from jaxdyn.model import Shape as Shape
from jaxdyn.model import Topology as Topology
from jaxdyn.model import attach as attach
from jaxdyn.model import change_base as change_base
from jaxdyn.model import lock_joints as lock_joints
from jaxdyn.model import merge as merge
from jaxdyn.model import reduce_joints as reduce_joints
from jaxdyn.model import remove_link as remove_link
from jaxdyn.model import subtree as subtree

__version__ = _version("jaxdyn")
