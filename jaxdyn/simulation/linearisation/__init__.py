"""Linearisation of whole systems, with the states of their parts, and linear-quadratic regulators of them."""

from jaxdyn.simulation.linearisation._linearise import linearise_system as linearise_system
from jaxdyn.simulation.linearisation._lqr import StateFeedback as StateFeedback
from jaxdyn.simulation.linearisation._lqr import SystemLqr as SystemLqr
from jaxdyn.simulation.linearisation._lqr import system_lqr as system_lqr
