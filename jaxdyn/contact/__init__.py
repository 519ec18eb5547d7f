"""Contact: gaps between bodies, with laws of impact and friction."""

from jaxdyn.contact.contract import AbstractGap as AbstractGap
from jaxdyn.contact.contract import Touch as Touch
