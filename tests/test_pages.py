"""The code of the pages on models, dynamics, extensions, pictures, and the quickstart runs."""

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


@pytest.mark.slow
def test_quickstart_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_page("quickstart")
    assert names["found"].cost < 0.8 * names["found"].history[0]
    assert all((tmp_path / name).stat().st_size > 10_000 for name in ("arm.png", "falls.gif", "report.html"))
