"""The contract of a gap between two bodies."""

from jaxdyn.contact.contract._contract import AbstractGap as AbstractGap
from jaxdyn.contact.contract._contract import Touch as Touch
from jaxdyn.contact.contract._contract import relative_velocity as relative_velocity
from jaxdyn.contact.contract._contract import slip_velocity as slip_velocity
