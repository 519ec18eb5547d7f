"""Multi-phase problems: phases with their own dynamics and durations, joined by transitions."""

from jaxdyn.trajopt.phases._multi_phase import multi_phase as multi_phase
from jaxdyn.trajopt.phases._trajectories import PhaseTrajectory as PhaseTrajectory
from jaxdyn.trajopt.phases._trajectories import phase_trajectories as phase_trajectories
from jaxdyn.trajopt.phases._transition import Transition as Transition
