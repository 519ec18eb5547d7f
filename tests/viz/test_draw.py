"""Pictures of robots show their links where forward kinematics has them."""

import itertools
import json
import re
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from PIL import Image

import jaxdyn as jd
from jaxdyn._errors import ArgumentError, ModelError, ShapeError
from jaxdyn.simulation import System, Trajectory
from jaxdyn.viz import animate, as_html, draw, to_html
from jaxdyn.viz._solids import polyhedron

BOXES = """<mujoco><worldbody><body name="block" pos="0 0 1"><freejoint/>
  <geom type="box" size=".3 .2 .1" rgba="0.2 0.5 0.8 1"/>
  <body name="arm" pos=".3 0 0"><joint type="hinge" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05" rgba="1 0 0 1"/></body></body></worldbody></mujoco>"""


def swing(model, q) -> Trajectory:
    """A trajectory of given configurations, made without a simulation."""
    q = jnp.asarray(q)
    times, zero = q.shape[-2], jnp.zeros(q.shape[:-2], int)
    reached = jnp.ones(q.shape[:-1], bool)
    return Trajectory(
        jnp.broadcast_to(jnp.linspace(0, 1, times), q.shape[:-1]), q, q * 0, None, reached, zero, zero, System(model)
    )


def sticks(figure):
    """Sets of the ends of the sticks in a picture, rounded, with their opacity."""
    collections = [c for c in figure.axes[0].collections if isinstance(c, LineCollection) and c.get_zorder() == 3]
    ends = lambda c: {frozenset(map(tuple, np.round(s, 6))) for s in c.get_segments()}
    return [(ends(c), c.get_alpha()) for c in collections]


def test_sticks_of_a_double_pendulum():
    """Links of 1 m at the angles 90 and 180 degrees from the vertical, seen along y."""
    model = jd.robots.double_pendulum()
    q = jnp.array([[0.0, 0.0], [jnp.pi / 2, jnp.pi / 2]])
    figure = draw(model, q)
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x [m]", "z [m]")
    tips = [jd.frame_pose(model, x, "tip").translation for x in q]
    elbows = [jd.frame_pose(model, x, "elbow").translation for x in q]
    for (ends, alpha), elbow, tip, expected in zip(sticks(figure), elbows, tips, (0.25, 1.0), strict=True):
        plane = lambda p: tuple(np.round(np.asarray(p)[[0, 2]], 6) + 0.0)
        assert alpha == expected
        found = {frozenset(tuple(np.add(p, 0.0)) for p in stick) for stick in ends}
        assert {frozenset({(0.0, 0.0), plane(elbow)}), frozenset({plane(elbow), plane(tip)})} <= found


def test_closed_loops_are_closed():
    model = jd.robots.four_bar()
    (ends, _), *_ = sticks(draw(model, jd.neutral(model)))
    points = [p for stick in ends for p in stick if len(stick) == 2]
    assert len(points) == 8
    assert all(points.count(p) == 2 for p in points)


def test_shapes_are_polyhedra_with_outward_faces():
    model = jd.parse_mjcf(BOXES)
    figure = draw(model, jd.neutral(model))
    (faces,) = [c for c in figure.axes[0].collections if isinstance(c, PolyCollection)]
    assert len(faces.get_paths()) > 20
    for shape in model.info.shapes:
        vertices, faces = polyhedron(shape)
        volume = 0.0
        for face in faces:
            a, *others = (vertices[i] for i in face)
            volume += sum(a @ np.cross(b, c) for b, c in itertools.pairwise(others)) / 6
        exact = np.prod(shape.size) if shape.kind == "box" else np.pi * 0.05**2 * (0.4 + 4 / 3 * 0.05)
        np.testing.assert_allclose(volume, exact, rtol=0.08)


def test_animation_shows_the_motion(tmp_path):
    model = jd.robots.pendulum()
    q = np.linspace(0, np.pi / 2, 11)[:, None]
    batch = jax.tree.map(lambda *x: jnp.stack(x), swing(model, q), swing(jd.robots.pendulum(1.3), q / 2))
    path = animate(batch, tmp_path / "swing.gif", fps=4, speed=1.0, trace=["tip"], dpi=40)
    with Image.open(path) as film:
        assert film.n_frames == 5
        first, last = (np.asarray((film.seek(k), film.convert("RGB"))[1]) for k in (0, 4))
    assert (first != last).any(axis=-1).mean() > 0.005
    assert (first != 255).any()


def test_page_holds_the_poses(tmp_path):
    model = jd.parse_mjcf(BOXES)
    q = np.tile(np.asarray(jd.neutral(model)), (3, 1))
    q[:, -1] = [0.0, 0.5, 1.0]
    page = as_html(swing(model, q), fps=2, trace=["arm"], title="a </script> title")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', str(page), re.S)[1])
    assert data["times"] == [0.0, 0.5, 1.0] and "srcdoc" in page._repr_html_() and "</script> title" not in str(page)
    arm = np.array(data["poses"])[0, :, model.link_names.index("arm")]
    np.testing.assert_allclose(arm[:, 0], np.cos(q[:, -1]), atol=1e-5)
    np.testing.assert_allclose(arm[:, 9:], [[0.3, 0.0, 0.0]] * 3, atol=1e-5)
    assert {color for *_, color in data["solids"]} == {"#3380cc", "#ff0000"}
    assert to_html(swing(model, q), tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_page_in_a_browser(tmp_path):
    """A screenshot has pixels in the colours of the links, and fewer than half are not white."""
    browser = next((x for x in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if x), None)
    if browser is None:
        pytest.skip("needs a Chromium browser")
    model = jd.parse_mjcf(BOXES)
    path = to_html(swing(model, np.tile(np.asarray(jd.neutral(model)), (2, 1))), tmp_path / "page.html")
    picture = tmp_path / "page.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=640,480", "--virtual-time-budget=800"]
    flags += ["--disable-background-networking", "--disable-sync", "--no-first-run", "--disable-quic"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    subprocess.run(
        [browser, *flags, profile, f"--screenshot={picture}", path.as_uri()],
        check=True,
        timeout=300,
        capture_output=True,
    )
    pixels = np.asarray(Image.open(picture).convert("RGB")).reshape(-1, 3).astype(int)
    red = (pixels[:, 0] > 150) & (pixels[:, 1:] < 60).all(axis=1)
    blue = (pixels[:, 2] > 120) & (pixels[:, 0] < 90)
    assert red.mean() > 0.002 and blue.mean() > 0.01
    assert 0.4 < (pixels > 240).all(axis=1).mean() < 0.99


def test_refused_pictures(tmp_path):
    model = jd.robots.pendulum()
    with pytest.raises(ShapeError, match="expected"):
        draw(model, jnp.zeros(3))
    still = swing(model, np.zeros((2, 1)))
    with pytest.raises(ModelError, match="gif or .mp4"):
        animate(still, tmp_path / "film.avi")
    with pytest.raises(ModelError, match="html"):
        to_html(still, tmp_path / "film.txt")
    with pytest.raises(ModelError, match="no link or frame is called 'hand'"):
        animate(still, tmp_path / "film.gif", trace=["hand"])
    if shutil.which("ffmpeg") is None:
        with pytest.raises(ArgumentError, match="ffmpeg"):
            animate(still, tmp_path / "film.mp4")
