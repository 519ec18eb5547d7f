"""Beams: materials, cross-sections, and the mass, inertia and stiffness that follow from them."""

from jaxdyn.beams._beam import Beam as Beam
from jaxdyn.beams._contract import AbstractSection as AbstractSection
from jaxdyn.beams._contract import SectionProperties as SectionProperties
from jaxdyn.beams._material import Material as Material
from jaxdyn.beams._sections import Profile as Profile
from jaxdyn.beams._sections import Rectangle as Rectangle
from jaxdyn.beams._sections import Round as Round
from jaxdyn.beams._sections import Tube as Tube
