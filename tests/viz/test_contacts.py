"""The figure of contacts, on a bar that clatters to rest on its two corners."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
from jaxdyn.viz import plot_contacts


@pytest.mark.slow
def test_a_dropped_bar_and_its_figure(tmp_path):
    """Energy never rises, the forces carry the weight at the end, and the figure shows both contacts."""
    b = jd.ModelBuilder(name="bar")
    b.add_link("x", "world", jd.joints.Prismatic((1, 0, 0)))
    b.add_link("z", "x", jd.joints.Prismatic((0, 0, 1)))
    b.add_link("bar", "z", jd.joints.Revolute((0, 1, 0)), jd.spatial.box((0.5, 0.1, 0.1), mass=1.0))
    corners = [
        Contact(name, Gap(("bar", (x, 0, -0.05)), Point(), "world", Plane()), 0.3, 0.3, (0, 1, 0))
        for name, x in (("left", -0.25), ("right", 0.25))
    ]
    system = jd.System(b.build(), motion=ContactMotion(corners))
    ts = jnp.linspace(0, 1.2, 121)
    simulate: Any = jd.simulate
    run = simulate(system, jnp.array([0.0, 0.3, 0.3]), jnp.array([1.0, 0, 0]), ts, max_events=64)
    assert run.status == jd.SimulationStatus.FINISHED
    assert np.diff(np.asarray(run.energy)).max() < 1e-7
    state = run.contacts
    assert np.allclose(state.normal_force[-1], 9.81 / 2) and np.allclose(state.gap[-1], 0, atol=1e-12)
    assert np.asarray(state.gap).min() > -1e-7
    path = tmp_path / "contacts.png"
    figure = plot_contacts(run, path, title="bar")
    assert path.stat().st_size > 10_000
    gap, normal, _, phases = figure.axes
    assert [line.get_label() for line in gap.lines] == ["left", "right"]
    assert abs(normal.lines[0].get_ydata()[-1] - 9.81 / 2) < 1e-6
    assert [text.get_text() for text in phases.get_yticklabels()] == ["left", "right"]
    with pytest.raises(jd.ModelError, match="the suffix of a figure"):
        plot_contacts(run, tmp_path / "contacts.bmp")


@pytest.mark.slow
def test_a_motion_without_contacts_is_refused():
    swing = jd.simulate(jd.robots.pendulum(), jnp.ones(1), jnp.zeros(1), jnp.linspace(0, 0.1, 3))
    with pytest.raises(jd.ModelError, match="has no contacts"):
        plot_contacts(swing)
