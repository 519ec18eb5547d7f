"""Figures of trajectories, drawn by matplotlib. The library imports this folder nowhere."""

from jaxdyn.viz._beams import plot_beams as plot_beams
from jaxdyn.viz._canvas import GREY as GREY
from jaxdyn.viz._canvas import INK as INK
from jaxdyn.viz._canvas import label_axes as label_axes
from jaxdyn.viz._canvas import new_figure as new_figure
from jaxdyn.viz._contacts import plot_contacts as plot_contacts
from jaxdyn.viz._drives import plot_drives as plot_drives
from jaxdyn.viz._loads import plot_internal_loads as plot_internal_loads
from jaxdyn.viz._trajectory import plot_trajectory as plot_trajectory
