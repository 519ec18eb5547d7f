"""Reports on fits: residuals and their whiteness, the verdict, the HTML page, and the checked URDF."""

from jaxdyn.identification.report._report import FitReport as FitReport
from jaxdyn.identification.report._report import report_on as report_on
from jaxdyn.identification.report._residuals import JointResidual as JointResidual
from jaxdyn.identification.report._residuals import Whiteness as Whiteness
from jaxdyn.identification.report._residuals import whiteness as whiteness
from jaxdyn.identification.report._urdf_check import UrdfCheck as UrdfCheck
from jaxdyn.identification.report._urdf_check import write_checked_urdf as write_checked_urdf
from jaxdyn.identification.report._verdict import Rule as Rule
from jaxdyn.identification.report._verdict import Verdict as Verdict
from jaxdyn.identification.report._verdict import judge as judge
from jaxdyn.identification.report._verdict import unphysical_links as unphysical_links
