"""Robots that a command names: read from a file, or bundled with jaxdyn."""

from jaxdyn.cli.robots._robots import bundled_robots as bundled_robots
from jaxdyn.cli.robots._robots import read_model as read_model
from jaxdyn.cli.robots._robots import read_robot as read_robot
