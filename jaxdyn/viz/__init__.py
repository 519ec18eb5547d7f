"""Pictures of trajectories, by matplotlib; nothing of the library imports this folder."""

from jaxdyn.viz._trajectory import plot_trajectory as plot_trajectory
