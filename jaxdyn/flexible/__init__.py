"""Flexible links: chains of rigid sublinks with elastic joints, whose numbers follow from a `Beam`."""

from jaxdyn.flexible._add_flexible_link import add_flexible_link as add_flexible_link
from jaxdyn.flexible._flexible_link import FlexibleLink as FlexibleLink
from jaxdyn.flexible._flexible_link import Lump as Lump
from jaxdyn.flexible._make_flexible import make_flexible as make_flexible
from jaxdyn.flexible._modal_damping import ModalDamping as ModalDamping
from jaxdyn.flexible._strains import Strains as Strains
