"""The figures of loads show the values that they are given."""

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.collections import LineCollection

import jaxdyn as jd
from jaxdyn.loads import Deflections, InternalLoads
from jaxdyn.viz import plot_beams, plot_internal_loads


def internal(times: int) -> InternalLoads:
    """Random loads of two beams on one link and one on another."""
    rng = np.random.default_rng(0)
    s = jnp.broadcast_to(jnp.linspace(0.0, 0.5, 5), (times, 3, 5))
    force, moment = jnp.asarray(rng.normal(size=(2, times, 3, 5, 3)))
    return InternalLoads(("upper", "upper", "lower"), s, force, moment)


def deflected(times: int) -> Deflections:
    """A double pendulum with one beam, whose end moves by 1 mm times the number of the row."""
    model = jd.robots.double_pendulum()
    s = jnp.broadcast_to(jnp.linspace(0.0, 1.0, 3), (times, 1, 3))
    points = jnp.stack([0 * s, 0 * s, -s], -1)
    shift = jnp.stack([s * 1e-3 * jnp.arange(1, times + 1)[:, None, None], 0 * s, 0 * s], -1)
    names = model.link_names + model.frame_names
    origins = jnp.zeros((times, 4, 3)).at[:, 1:, 2].set(jnp.array([-1.0, -1.0, -2.0]))
    return Deflections(("upper",), names, s, points, 0 * shift, shift, origins, 0 * origins, 0 * origins)


def test_diagrams_of_a_link(tmp_path):
    loads = internal(4)
    path = tmp_path / "loads.png"
    figure = plot_internal_loads(loads, "upper", path)
    assert path.stat().st_size > 10_000
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert list(panels) == ["axial force", "shear force", "torque", "bending moment"]
    worst = int(np.asarray(loads.bending)[:, :2].max((1, 2)).argmax())
    curves = [line for line in panels["axial force"].lines if len(line.get_xdata()) == 5]
    for k, line in enumerate(curves):  # the beams follow each other
        np.testing.assert_allclose(line.get_xdata(), 0.5 * k + loads.s[0, k])
        np.testing.assert_allclose(line.get_ydata(), loads.force[worst, k, :, 0])
    assert len(curves) == 2 and len(panels["bending moment"].collections) == 4
    band = panels["torque"].collections[0].get_paths()[0].vertices[:, 1]
    torque = loads.moment[:, 0, :, 0]
    np.testing.assert_allclose([band.min(), band.max()], [torque.min(), torque.max()])
    chosen = plot_internal_loads(loads, "lower", row=2, title="forearm")
    np.testing.assert_allclose(chosen.axes[2].lines[0].get_ydata(), loads.moment[2, 2, :, 0])
    still = InternalLoads(loads.links, loads.s[0], loads.force[0], loads.moment[0])
    assert not plot_internal_loads(still, "upper").axes[0].collections


def test_diagrams_of_sliding_sections():
    """Where joints slide along a beam, ranges over times are interpolated."""
    loads = internal(2)
    slide = loads.s.at[1, 2, 2].add(0.01)
    moved = InternalLoads(loads.links, slide, 0 * loads.force + 1, loads.moment)
    band = plot_internal_loads(moved, "lower").axes[0].collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose(band, 1)


def test_picture_of_a_robot(tmp_path):
    model, x = jd.robots.double_pendulum(), deflected(3)
    values = jnp.zeros((3, 1, 3)).at[1, 0, 2].set(0.8)
    path = tmp_path / "robot.png"
    figure = plot_beams(model, x, values, path, scale=100.0)
    assert path.stat().st_size > 10_000
    axes, bar = figure.axes
    assert bar.get_ylabel() == "utilisation" and axes.get_title() == "deflections × 100, largest 2 mm"
    (beams,) = [c for c in axes.collections if isinstance(c, LineCollection) and c.get_linewidths()[0] == 4.0]
    segments = sorted(np.asarray(x).tolist() for x in beams.get_segments())
    np.testing.assert_allclose(segments, [[[0, 0], [0.1, -0.5]], [[0.1, -0.5], [0.2, -1.0]]])  # row 1, seen along y
    plain = plot_beams(model, x)
    assert len(plain.axes) == 1 and "largest 3 mm" in plain.axes[0].get_title()
    assert (plain.axes[0].get_xlabel(), plain.axes[0].get_ylabel()) == ("x [m]", "z [m]")
    assert plot_beams(model, x, row=0, scale=0.0).axes[0].get_title() == ""


def test_refused_figures(tmp_path):
    model, x, loads = jd.robots.double_pendulum(), deflected(2), internal(2)
    with pytest.raises(jd.ModelError, match="the suffix of a figure"):
        plot_beams(model, x, path=tmp_path / "robot.bmp")
    with pytest.raises(
        jd.ModelError, match="'hand' has no beam among the loads; links with beams are 'upper', 'lower'"
    ):
        plot_internal_loads(loads, "hand")
    with pytest.raises(jd.ShapeError, match="values has shape"):
        plot_beams(model, x, jnp.zeros((2, 1, 5)))
    batch = InternalLoads(loads.links, loads.s[None], loads.force[None], loads.moment[None])
    with pytest.raises(jd.ShapeError, match="not a batch"):
        plot_internal_loads(batch, "upper")
