"""Laws of rigid contact: dry friction and restitution."""

from jaxdyn.contact.laws._friction import Coulomb as Coulomb
from jaxdyn.contact.laws._friction import FrictionGroup as FrictionGroup
from jaxdyn.contact.laws._friction import as_friction as as_friction
from jaxdyn.contact.laws._restitution import AbstractRestitution as AbstractRestitution
from jaxdyn.contact.laws._restitution import Newton as Newton
from jaxdyn.contact.laws._restitution import Poisson as Poisson
from jaxdyn.contact.laws._restitution import Stronge as Stronge
