"""The configuration manifold, poses, Jacobians, the centre of mass, and inverse kinematics."""

from jaxdyn.kinematics._center_of_mass import center_of_mass as center_of_mass
from jaxdyn.kinematics._center_of_mass import center_of_mass_jacobian as center_of_mass_jacobian
from jaxdyn.kinematics._center_of_mass import center_of_mass_velocity as center_of_mass_velocity
from jaxdyn.kinematics._center_of_mass import total_mass as total_mass
from jaxdyn.kinematics._configuration import configuration_velocity as configuration_velocity
from jaxdyn.kinematics._configuration import difference as difference
from jaxdyn.kinematics._configuration import integrate as integrate
from jaxdyn.kinematics._configuration import neutral as neutral
from jaxdyn.kinematics._configuration import random_configuration as random_configuration
from jaxdyn.kinematics._forward import Poses as Poses
from jaxdyn.kinematics._forward import forward_kinematics as forward_kinematics
from jaxdyn.kinematics._frames import frame_acceleration as frame_acceleration
from jaxdyn.kinematics._frames import frame_classical_acceleration as frame_classical_acceleration
from jaxdyn.kinematics._frames import frame_pose as frame_pose
from jaxdyn.kinematics._frames import frame_velocity as frame_velocity
from jaxdyn.kinematics._frames import jacobian as jacobian
from jaxdyn.kinematics._frames import jacobian_derivative as jacobian_derivative
from jaxdyn.kinematics._inverse import IKStatus as IKStatus
from jaxdyn.kinematics._inverse import InverseKinematics as InverseKinematics
from jaxdyn.kinematics._inverse import inverse_kinematics as inverse_kinematics
from jaxdyn.kinematics._reference import LOCAL as LOCAL
from jaxdyn.kinematics._reference import WORLD as WORLD
from jaxdyn.kinematics._reference import WORLD_ALIGNED as WORLD_ALIGNED
from jaxdyn.kinematics._reference import AbstractReference as AbstractReference
