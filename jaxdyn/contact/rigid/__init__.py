"""Rigid contact: impacts, sticking and sliding as events of a motion with modes."""

from jaxdyn.contact.rigid._complementarity import Problem as Problem
from jaxdyn.contact.rigid._complementarity import solve_complementarity as solve_complementarity
from jaxdyn.contact.rigid._contact import Contact as Contact
from jaxdyn.contact.rigid._impacts import AbstractImpactSequence as AbstractImpactSequence
from jaxdyn.contact.rigid._impacts import AllAtOnce as AllAtOnce
from jaxdyn.contact.rigid._impacts import OneAfterAnother as OneAfterAnother
from jaxdyn.contact.rigid._layout import contact_layout as contact_layout
from jaxdyn.contact.rigid._modes import Modes as Modes
from jaxdyn.contact.rigid._motion import ContactMotion as ContactMotion
from jaxdyn.contact.rigid._motion import ContactState as ContactState
from jaxdyn.contact.rigid._planar_impact import planar_impact as planar_impact
from jaxdyn.contact.rigid._spatial_impact import spatial_impact as spatial_impact
