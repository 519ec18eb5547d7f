"""Rigid contact: impacts, sticking and sliding as events of a motion with modes."""

from jaxdyn.contact.rigid._contact import Contact as Contact
from jaxdyn.contact.rigid._impacts import AbstractImpactSequence as AbstractImpactSequence
from jaxdyn.contact.rigid._impacts import AllAtOnce as AllAtOnce
from jaxdyn.contact.rigid._impacts import OneAfterAnother as OneAfterAnother
from jaxdyn.contact.rigid._modes import Modes as Modes
from jaxdyn.contact.rigid._motion import ContactMotion as ContactMotion
