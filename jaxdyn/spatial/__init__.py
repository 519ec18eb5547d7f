"""Rotations, poses and rigid-body inertia; functions of plain arrays."""

from jaxdyn.spatial._inertia import Inertia as Inertia
from jaxdyn.spatial._inertia import box as box
from jaxdyn.spatial._inertia import cylinder as cylinder
from jaxdyn.spatial._inertia import ellipsoid as ellipsoid
from jaxdyn.spatial._inertia import inertia_defect as inertia_defect
from jaxdyn.spatial._inertia import point_mass as point_mass
from jaxdyn.spatial._inertia import principal_axes as principal_axes
from jaxdyn.spatial._inertia import rod as rod
from jaxdyn.spatial._inertia import shell as shell
from jaxdyn.spatial._inertia import sphere as sphere
from jaxdyn.spatial._inertia import steiner as steiner
from jaxdyn.spatial._pose import Pose as Pose
from jaxdyn.spatial._rotation import axis_angle_to_matrix as axis_angle_to_matrix
from jaxdyn.spatial._rotation import hamilton_product as hamilton_product
from jaxdyn.spatial._rotation import matrix_to_quaternion as matrix_to_quaternion
from jaxdyn.spatial._rotation import matrix_to_rotation_vector as matrix_to_rotation_vector
from jaxdyn.spatial._rotation import quaternion_conjugate as quaternion_conjugate
from jaxdyn.spatial._rotation import quaternion_exp as quaternion_exp
from jaxdyn.spatial._rotation import quaternion_log as quaternion_log
from jaxdyn.spatial._rotation import quaternion_multiply as quaternion_multiply
from jaxdyn.spatial._rotation import quaternion_normalize as quaternion_normalize
from jaxdyn.spatial._rotation import quaternion_to_matrix as quaternion_to_matrix
from jaxdyn.spatial._rotation import rotation_vector_to_matrix as rotation_vector_to_matrix
from jaxdyn.spatial._rotation import rpy_to_matrix as rpy_to_matrix
from jaxdyn.spatial._skew import skew as skew
from jaxdyn.spatial._ten_parameters import ten_parameters as ten_parameters
