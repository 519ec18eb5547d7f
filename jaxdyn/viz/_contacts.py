"""The figure of the contacts of a trajectory: gaps, forces and phases."""

import os
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from jaxdyn._errors import ModelError
from jaxdyn.simulation import Trajectory
from jaxdyn.viz._canvas import COLORS, GREY, check_drawable, finish_figure, label_axes, new_figure, plot_columns

_STATES = {"sticks": COLORS[0], "slides": COLORS[1], "closed": COLORS[2]}


def plot_contacts(
    trajectory: Trajectory, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 120
) -> Figure:
    """Draws gaps, normal forces and friction forces of the contacts over time, and the phases of each contact.

    A bar for each contact shows where it is closed, and whether it sticks or slides; ticks mark impulses.

    Arguments: as for `plot_trajectory`; the motion of the trajectory is a `ContactMotion`.

    Returns the matplotlib figure, which is independent of pyplot. Raises `ShapeError` for a batch of trajectories, and
    `ModelError` for another suffix of `path` and for a motion without contacts.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
    from jaxdyn.viz import plot_contacts

    b = jd.ModelBuilder()
    puck = b.add_link("puck", "world", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(1.0)).build()
    floor = Contact("floor", Gap("puck", Point(), "world", Plane()), restitution=0.6)
    system = jd.System(puck, motion=ContactMotion(floor))
    run = jd.simulate(system, jnp.array([0.5]), jnp.zeros(1), jnp.linspace(0.0, 2.0, 101))
    figure = plot_contacts(run)
    assert len(figure.axes) == 4
    ```
    """
    check_drawable(trajectory, path)
    state = trajectory.contacts
    motion: Any = trajectory.system.motion
    names = [contact.name for contact in motion.contacts]
    owner = np.asarray(motion.layout.contact)
    t = np.asarray(trajectory.t)
    friction = np.zeros((len(t), len(names)))
    first = {int(i): k for k, i in reversed(list(enumerate(owner)))}  # the first group of a contact is its slip
    for i, k in first.items():
        friction[:, i] = np.linalg.norm(np.asarray(state.friction)[:, k], axis=-1)
    figure = new_figure(7.0, 7.2 + 0.25 * len(names))
    panels = figure.subplots(4, 1, sharex=True, height_ratios=(3, 3, 3, 0.8 + 0.5 * len(names)))
    for axes, values, label in zip(
        panels,
        (state.gap, state.normal_force, friction),
        ("gap, m", "normal force, N", "friction force, N"),
        strict=False,
    ):
        plot_columns(axes, t, np.asarray(values), names)
        label_axes(axes, label.split(",")[0], y=label)
    if len(names) > 1:
        panels[0].legend(fontsize=8, frameon=False)
    _draw_phases(panels[3], trajectory, names, first)
    name = trajectory.system.model.name or ""
    return finish_figure(figure, name if title is None else title, path, dpi)


def _draw_phases(axes: Axes, trajectory: Trajectory, names: list[str], first: dict[int, int]):
    phases = trajectory.phases
    if phases is None:
        raise ModelError("the trajectory has no record of phases; take it from simulate")
    count = int(phases.count)
    starts = np.asarray(phases.time)[:count]
    ends = np.append(starts[1:], float(np.asarray(trajectory.t)[-1]))
    closed, sliding = np.asarray(phases.modes.closed)[:count], np.asarray(phases.modes.sliding)[:count]
    impulse = np.asarray(phases.impulse)[:count]
    motion: Any = trajectory.system.motion
    used = []
    for i in range(len(names)):
        for k in np.flatnonzero(closed[:, i] > 0):
            kind = "closed" if i not in first else "slides" if sliding[k, first[i]] > 0 else "sticks"
            used.append(kind)
            axes.barh(i, ends[k] - starts[k], left=starts[k], height=0.6, color=_STATES[kind])
        hits = starts[impulse[:, motion.layout.normal[i]] > 0]
        axes.plot(hits, np.full(len(hits), i), "|", color="black", markersize=12)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    label_axes(axes, "phases", "t, s")
    axes.grid(visible=False)
    handles = [Patch(color=color, label=kind) for kind, color in _STATES.items() if kind in used]
    if handles:
        axes.legend(handles=handles, fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.spines["left"].set_color(GREY)
