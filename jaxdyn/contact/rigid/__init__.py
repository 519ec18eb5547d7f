"""Rigid contact: impacts, sticking and sliding as events of a motion with modes."""

from jaxdyn.contact.rigid._complementarity import ContactProblem as ContactProblem
from jaxdyn.contact.rigid._complementarity import solve_complementarity as solve_complementarity
from jaxdyn.contact.rigid._contact import Contact as Contact
from jaxdyn.contact.rigid._feedback import ContactFeedback as ContactFeedback
from jaxdyn.contact.rigid._forces import force_map as force_map
from jaxdyn.contact.rigid._forces import friction_cones as friction_cones
from jaxdyn.contact.rigid._forces import slip_directions as slip_directions
from jaxdyn.contact.rigid._impacts import AbstractImpactSequence as AbstractImpactSequence
from jaxdyn.contact.rigid._impacts import AllAtOnce as AllAtOnce
from jaxdyn.contact.rigid._impacts import OneAfterAnother as OneAfterAnother
from jaxdyn.contact.rigid._layout import contact_layout as contact_layout
from jaxdyn.contact.rigid._modes import ContactModes as ContactModes
from jaxdyn.contact.rigid._motion import ContactMotion as ContactMotion
from jaxdyn.contact.rigid._motion import ContactState as ContactState
from jaxdyn.contact.rigid._planar_impact import planar_impact as planar_impact
from jaxdyn.contact.rigid._rows import ContactKinematics as ContactKinematics
from jaxdyn.contact.rigid._rows import contact_kinematics as contact_kinematics
from jaxdyn.contact.rigid._spatial_impact import spatial_impact as spatial_impact
