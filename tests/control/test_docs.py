"""The code of docs/control.md runs, and the page names every control law."""

import equinox as eqx
import pytest

from jaxdyn import control

from ..pages import read_page, run_page


@pytest.mark.slow
def test_page_runs():
    names = run_page("control")
    assert names["found"].history[-1] < names["found"].history[0]
    assert names["tuned"].kp.min() > 0


def test_page_names_every_law():
    text = read_page("control")
    laws = [c for c in vars(control).values() if isinstance(c, type) and issubclass(c, eqx.Module) and callable(c)]
    missing = [c.__name__ for c in laws if "__call__" in vars(c) and c.__name__ not in text]
    assert missing == ["LinearFeedback", "TrackingFeedback"]  # results of lqr and tracking_lqr
