"""Ready-made robots: textbook pendulums, chains of any length, a 7-joint arm and a humanoid."""

from jaxdyn.robots._humanoid import humanoid as humanoid
from jaxdyn.robots._panda import panda as panda
from jaxdyn.robots._pendulum import chain as chain
from jaxdyn.robots._pendulum import double_pendulum as double_pendulum
from jaxdyn.robots._pendulum import pendulum as pendulum
