"""Readers of recordings of ROS messages: bags of ROS 1, SQLite databases and MCAP files."""

from jaxdyn.identification.logs.recordings._bags import read_mcap as read_mcap
from jaxdyn.identification.logs.recordings._bags import read_ros1 as read_ros1
from jaxdyn.identification.logs.recordings._bags import read_sqlite as read_sqlite
