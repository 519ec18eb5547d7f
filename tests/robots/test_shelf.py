"""What all ready-made robots have in common: the table of docs/robots.md, bodies that exist, derivatives."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import robots
from tests.oracles import to_pinocchio

from ._shelf import DIMENSIONS, SHELF

PAGE = (Path(__file__).parents[2] / "docs" / "robots.md").read_text(encoding="utf-8")


def _table() -> dict[str, tuple[int, int, float]]:
    rows = re.findall(r"^\| `(\w+)[^|]*\| (\d+) \| (\d+) \| ([\d.]+) \| \S.* \|$", PAGE, re.M)
    return {name: (int(nq), int(nv), float(mass)) for name, nq, nv, mass in rows}


def test_the_table_lists_every_robot():
    made = {
        name for name, value in vars(robots).items() if getattr(value, "__module__", "").startswith("jaxdyn.robots.")
    }
    assert _table().keys() == SHELF.keys() == made


@pytest.mark.parametrize("name", SHELF)
def test_the_table_is_true(name):
    model, (nq, nv, mass) = SHELF[name](), _table()[name]
    assert (model.nq, model.nv) == (nq, nv)
    np.testing.assert_allclose(np.sum(model.links.mass), mass, rtol=1e-12)
    assert model.name
    assert getattr(robots, name).__doc__


@pytest.mark.slow
def test_the_page_runs():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    scope = {}
    exec(compile(code, "robots.md", "exec"), scope)
    np.testing.assert_allclose(scope["slope"], np.cos(0.3), rtol=1e-10)


@pytest.mark.parametrize("name", SHELF)
def test_mass_matrix_is_positive(name):
    """As another engine computes it from the robot's numbers: it is they that are tested here."""
    model = SHELF[name]()
    oracle = to_pinocchio(model)
    for q in np.random.default_rng(0).standard_normal((3, model.nq)):
        m = oracle.mass_matrix(q)
        assert np.linalg.eigvalsh(m).min() > 1e-6


def _numbers(model):
    parts = (model.links, model.placements, model.joints, model.frames, model.closures)
    return jnp.concatenate([x.ravel() for x in jax.tree.leaves(parts)])


@pytest.mark.parametrize("name", DIMENSIONS)
def test_numbers_of_a_robot_have_derivatives_in_its_dimensions(name):
    """Against central differences, which build from known numbers and hence by another path."""
    robot, at = DIMENSIONS[name]
    at, step = np.array(at), 1e-6
    # The closure's poses of a mechanism are leaves too.
    got = jax.jit(jax.jacfwd(lambda x: _numbers(robot(*x))))(jnp.asarray(at))
    for k, column in enumerate(np.asarray(got).T):
        shift = step * np.eye(len(at))[k]
        ends = [np.asarray(_numbers(robot(*(float(y) for y in x)))) for x in (at + shift, at - shift)]
        np.testing.assert_allclose(column, (ends[0] - ends[1]) / (2 * step), rtol=1e-7, atol=1e-8)
        assert np.abs(column).max() > 1e-3
