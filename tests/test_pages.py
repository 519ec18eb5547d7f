"""The code of the pages on models, dynamics, extensions and pictures runs."""

import jax
import pytest

from jaxdyn.model import Model
from tests.pages import run_page


@pytest.mark.slow
def test_models_page():
    names = run_page("models")
    assert all(isinstance(x, jax.Array) for x in (names["q"], names["v"]))


@pytest.mark.slow
def test_dynamics_page():
    names = run_page("dynamics")
    assert all(isinstance(x, jax.Array) for x in (names["q"], names["v"]))


@pytest.mark.slow
def test_extending_page():
    names = run_page("extending")
    assert isinstance(names["model"], Model)


@pytest.mark.slow
def test_pictures_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("pictures")
    assert len(names["figure"].axes) == 1 and len(str(names["page"])) > 10_000
    assert (tmp_path / "fall.gif").stat().st_size > 10_000
