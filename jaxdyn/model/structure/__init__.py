"""The data of a robot: `Model` and what the tree dynamics does not read."""

from jaxdyn.model.structure._descriptions import Actuator as Actuator
from jaxdyn.model.structure._descriptions import Closure as Closure
from jaxdyn.model.structure._descriptions import Coupling as Coupling
from jaxdyn.model.structure._descriptions import Info as Info
from jaxdyn.model.structure._descriptions import Note as Note
from jaxdyn.model.structure._descriptions import Shape as Shape
from jaxdyn.model.structure._model import JointProperties as JointProperties
from jaxdyn.model.structure._model import JointView as JointView
from jaxdyn.model.structure._model import Limits as Limits
from jaxdyn.model.structure._model import Links as Links
from jaxdyn.model.structure._model import Mimic as Mimic
from jaxdyn.model.structure._model import Model as Model
from jaxdyn.model.structure._model import Placements as Placements
