"""Compliant contact: laws of the normal force, regularised friction, and the contact as a part."""

from jaxdyn.contact.compliant._contact import CompliantContact as CompliantContact
from jaxdyn.contact.compliant._contact import ContactForces as ContactForces
from jaxdyn.contact.compliant._contact import ContactMode as ContactMode
from jaxdyn.contact.compliant._contact import complete_forces as complete_forces
from jaxdyn.contact.compliant._contact import is_ahead as is_ahead
from jaxdyn.contact.compliant._friction import RegularisedFriction as RegularisedFriction
from jaxdyn.contact.compliant._kinematics import GapCoordinate as GapCoordinate
from jaxdyn.contact.compliant._kinematics import contact_wrenches as contact_wrenches
from jaxdyn.contact.compliant._kinematics import gap_coordinate as gap_coordinate
from jaxdyn.contact.compliant._kinematics import gap_motion as gap_motion
from jaxdyn.contact.compliant._laws import AbstractNormalLaw as AbstractNormalLaw
from jaxdyn.contact.compliant._laws import Hertz as Hertz
from jaxdyn.contact.compliant._laws import HuntCrossley as HuntCrossley
from jaxdyn.contact.compliant._laws import KelvinVoigt as KelvinVoigt
from jaxdyn.contact.compliant._laws import series_stiffness as series_stiffness
