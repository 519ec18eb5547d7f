"""Contact: gaps between bodies, with laws of impact and friction."""

from jaxdyn.contact.contract import AbstractGap as AbstractGap
from jaxdyn.contact.contract import Touch as Touch
from jaxdyn.contact.laws import AbstractRestitution as AbstractRestitution
from jaxdyn.contact.laws import Coulomb as Coulomb
from jaxdyn.contact.laws import Newton as Newton
from jaxdyn.contact.laws import Poisson as Poisson
from jaxdyn.contact.laws import Stronge as Stronge
from jaxdyn.contact.rigid import AbstractImpactSequence as AbstractImpactSequence
from jaxdyn.contact.rigid import AllAtOnce as AllAtOnce
from jaxdyn.contact.rigid import Contact as Contact
from jaxdyn.contact.rigid import ContactMotion as ContactMotion
from jaxdyn.contact.rigid import Modes as Modes
from jaxdyn.contact.rigid import OneAfterAnother as OneAfterAnother
