"""Periodic orbits of systems, such as limit cycles of walkers: fixed points of return maps."""

from jaxdyn.simulation.orbits._orbit import PeriodicOrbit as PeriodicOrbit
from jaxdyn.simulation.orbits._orbit import periodic_orbit as periodic_orbit
from jaxdyn.simulation.orbits._status import OrbitStatus as OrbitStatus
