"""Robots as pytrees, and how to assemble and edit them."""

from jaxdyn.model._builder import ModelBuilder as ModelBuilder
from jaxdyn.model._descriptions import Actuator as Actuator
from jaxdyn.model._descriptions import Closure as Closure
from jaxdyn.model._descriptions import Coupling as Coupling
from jaxdyn.model._descriptions import Info as Info
from jaxdyn.model._descriptions import Note as Note
from jaxdyn.model._descriptions import Shape as Shape
from jaxdyn.model._edits import attach as attach
from jaxdyn.model._edits import change_base as change_base
from jaxdyn.model._edits import lock_joints as lock_joints
from jaxdyn.model._edits import merge as merge
from jaxdyn.model._edits import reduce_joints as reduce_joints
from jaxdyn.model._edits import remove_link as remove_link
from jaxdyn.model._edits import subtree as subtree
from jaxdyn.model._model import JointProperties as JointProperties
from jaxdyn.model._model import Limits as Limits
from jaxdyn.model._model import Links as Links
from jaxdyn.model._model import Mimic as Mimic
from jaxdyn.model._model import Model as Model
from jaxdyn.model._model import Placements as Placements
from jaxdyn.model._topology import Topology as Topology
