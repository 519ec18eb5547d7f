"""Robots as pytrees, and how to assemble and edit them."""

from jaxdyn.model._builder import ModelBuilder as ModelBuilder
from jaxdyn.model._model import JointProperties as JointProperties
from jaxdyn.model._model import Limits as Limits
from jaxdyn.model._model import Links as Links
from jaxdyn.model._model import Mimic as Mimic
from jaxdyn.model._model import Model as Model
from jaxdyn.model._model import Placements as Placements
from jaxdyn.model._topology import Topology as Topology
