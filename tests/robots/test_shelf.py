"""All bundled robots: the table of docs/robots.md, positive mass matrices, derivatives with respect to dimensions."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import robots
from tests.oracles import to_pinocchio
from tests.pages import read_page, run_page

from ._shelf import DIMENSIONS, ROBOTS

PAGE = read_page("robots")


def _table() -> dict[str, tuple[int, int, float]]:
    rows = re.findall(r"^\| `(\w+)[^|]*\| (\d+) \| (\d+) \| ([\d.]+) \| \S.* \|$", PAGE, re.M)
    return {name: (int(nq), int(nv), float(mass)) for name, nq, nv, mass in rows}


def test_the_table_lists_every_robot():
    public = {
        name for name, value in vars(robots).items() if getattr(value, "__module__", "").startswith("jaxdyn.robots.")
    }
    assert _table().keys() == ROBOTS.keys() == public


@pytest.mark.parametrize("name", ROBOTS)
def test_the_table_agrees_with_the_robots(name):
    model, (nq, nv, mass) = ROBOTS[name](), _table()[name]
    assert (model.nq, model.nv) == (nq, nv)
    np.testing.assert_allclose(np.sum(model.links.mass), mass, rtol=1e-12)
    assert model.name
    assert getattr(robots, name).__doc__


@pytest.mark.slow
def test_the_page_runs():
    names = run_page("robots")
    np.testing.assert_allclose(names["slope"], np.cos(0.3), rtol=1e-10)


@pytest.mark.parametrize("name", ROBOTS)
def test_mass_matrix_is_positive_definite(name):
    """Computed by another engine: this tests the numbers of the robots."""
    model = ROBOTS[name]()
    oracle = to_pinocchio(model)
    for q in np.random.default_rng(0).standard_normal((3, model.nq)):
        m = oracle.mass_matrix(q)
        assert np.linalg.eigvalsh(m).min() > 1e-6


def _concatenate_leaves(model):
    parts = (model.links, model.placements, model.joints, model.frames, model.closures)
    return jnp.concatenate([x.ravel() for x in jax.tree.leaves(parts)])


@pytest.mark.slow
@pytest.mark.parametrize("name", DIMENSIONS)
def test_leaves_are_differentiable_with_respect_to_dimensions(name):
    """Against central differences, which take the numpy path of concrete numbers."""
    robot, at = DIMENSIONS[name]
    at, step = np.array(at), 1e-6
    # The closure's poses of a mechanism are leaves too.
    got = jax.jit(jax.jacfwd(lambda x: _concatenate_leaves(robot(*x))))(jnp.asarray(at))
    for k, column in enumerate(np.asarray(got).T):
        shift = step * np.eye(len(at))[k]
        ends = [np.asarray(_concatenate_leaves(robot(*(float(y) for y in x)))) for x in (at + shift, at - shift)]
        np.testing.assert_allclose(column, (ends[0] - ends[1]) / (2 * step), rtol=1e-7, atol=1e-8)
        assert np.abs(column).max() > 1e-3
