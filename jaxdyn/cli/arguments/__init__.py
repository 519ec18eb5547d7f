"""Arguments that several commands share; imports nothing but the standard library."""

from jaxdyn.cli.arguments._robot import add_robot_argument as add_robot_argument
from jaxdyn.cli.arguments._robot import add_urdf_options as add_urdf_options
