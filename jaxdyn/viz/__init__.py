"""Figures of trajectories, drawn by matplotlib. The library imports this folder nowhere."""

from jaxdyn.viz._beams import plot_beams as plot_beams
from jaxdyn.viz._canvas import GREY as GREY
from jaxdyn.viz._canvas import INK as INK
from jaxdyn.viz._canvas import label_axes as label_axes
from jaxdyn.viz._canvas import new_figure as new_figure
from jaxdyn.viz._contacts import plot_contacts as plot_contacts
from jaxdyn.viz._draw import animate as animate
from jaxdyn.viz._draw import draw as draw
from jaxdyn.viz._drives import plot_drives as plot_drives
from jaxdyn.viz._html import Page as Page
from jaxdyn.viz._html import as_html as as_html
from jaxdyn.viz._html import to_html as to_html
from jaxdyn.viz._loads import plot_internal_loads as plot_internal_loads
from jaxdyn.viz._trajectory import plot_trajectory as plot_trajectory
