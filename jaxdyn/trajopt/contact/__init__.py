"""Planning with rigid contacts: phases with given contacts closed, and contact sequences that the optimiser finds."""

from jaxdyn.trajopt.contact._complementarity import ComplementarityRobot as ComplementarityRobot
from jaxdyn.trajopt.contact._homotopy import ContactPlan as ContactPlan
from jaxdyn.trajopt.contact._homotopy import relax_contacts as relax_contacts
from jaxdyn.trajopt.contact._homotopy import solve_through_contact as solve_through_contact
from jaxdyn.trajopt.contact._robot import ContactRobot as ContactRobot
from jaxdyn.trajopt.contact._transitions import lift_off as lift_off
from jaxdyn.trajopt.contact._transitions import touch_down as touch_down
