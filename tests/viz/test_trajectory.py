"""Figures show each coordinate once, with the numbers and units of the trajectory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.simulation import System, Trajectory, coordinate_names
from jaxdyn.viz import plot_trajectory
from jaxdyn.viz._groups import MAX_CURVES, group_coordinates

PNG = b"\x89PNG\r\n\x1a\n"


def trajectory(model, times=3) -> Trajectory:
    """A trajectory of random numbers, made without a simulation."""
    rng = np.random.default_rng(0)
    q = jax.vmap(lambda key: jd.random_configuration(model, key))(jax.random.split(jax.random.key(0), times))
    v = jnp.asarray(rng.normal(size=(times, model.nv)))
    zero = jnp.zeros((), int)
    return Trajectory(jnp.linspace(0, 1, times), q, v, None, jnp.full(times, True), zero, zero, System(model))


@pytest.mark.parametrize("name", ["double_pendulum", "panda", "humanoid", "quadruped", "cart_pole", "five_link_biped"])
def test_each_coordinate_is_in_one_panel(name):
    model = getattr(jd.robots, name)()
    found = group_coordinates(model)
    assert sorted(k for g in found for k in g.q) == list(range(model.nq))
    assert sorted(k for g in found for k in g.v) == list(range(model.nv))
    assert all(len(g.q) <= MAX_CURVES for g in found)
    units = [unit for _, unit in coordinate_names(model)]
    assert all({units[k] for k in g.q} == {g.q_unit} for g in found)


def test_each_limb_of_a_humanoid_has_its_own_panels():
    found = [g.q_names for g in group_coordinates(jd.robots.humanoid()) if g.is_plain]
    assert [{name.split("_")[0] for name in names} for names in found] == [
        *({"left"}, {"right"}, {"waist", "neck"}, {"left"}, {"right"})
    ]
    assert [len(names) for names in found] == [6, 6, 6, 7, 7]


@pytest.mark.slow
def test_curves_are_the_values_of_the_trajectory():
    tr = trajectory(jd.robots.double_pendulum(damping=(0.1, 0.2)))
    figure = plot_trajectory(tr)
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    drawn = lambda axes: np.stack([line.get_ydata() for line in axes.lines], axis=1)
    np.testing.assert_array_equal(drawn(panels["configuration"]), tr.q)
    np.testing.assert_array_equal(drawn(panels["velocity"]), tr.v)
    np.testing.assert_allclose(drawn(panels["effort"]), -tr.v * np.array([0.1, 0.2]), atol=1e-14)
    energy = drawn(panels["energy"])
    np.testing.assert_allclose(energy[:, 2], tr.energy - tr.potential_energy[0], atol=1e-12)
    labels = {title: axes.get_ylabel() for title, axes in panels.items() if title}
    assert labels["configuration"] == "[rad]" and labels["velocity"] == "[rad/s]" and labels["effort"] == "[N m]"
    assert panels["energy"].get_ylabel() == "[J]"


def test_written_files(tmp_path):
    tr = trajectory(jd.robots.double_pendulum(damping=(0.1, 0.2)))  # shares the programs of the test above
    plot_trajectory(tr, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(PNG)
    with pytest.raises(jd.ModelError, match="run.gif: the suffix of a figure must be one of .png, .pdf, .svg"):
        plot_trajectory(tr, tmp_path / "run.gif")
    assert [p.name for p in tmp_path.iterdir()] == ["run.png"]


@pytest.mark.exhaustive
def test_free_base(tmp_path):
    figure = plot_trajectory(trajectory(jd.robots.humanoid()), tmp_path / "run.svg", title="walk")
    text = (tmp_path / "run.svg").read_text()
    assert text.startswith("<?xml") and len(figure.axes) == 7 * 3 + 5 * 2 + 1


def test_batches_are_refused():
    one = trajectory(jd.robots.pendulum())
    with pytest.raises(jd.ShapeError, match="not a batch of shape \\(2,\\)"):
        plot_trajectory(jax.tree.map(lambda x: jnp.stack([x, x]), one))
