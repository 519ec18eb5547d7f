"""The code of docs/distributed.md runs, and the page names every public function."""

import numpy as np
import pytest

from jaxdyn import distributed

from ..pages import read_page, run_page


@pytest.mark.slow
def test_page_runs():
    several_processes = ("# rollouts.py", "# resilient.py")
    names = run_page("distributed", skip=lambda block: block.startswith(several_processes))
    mass = np.asarray(names["slope"].links.mass)
    assert np.isfinite(mass).all() and abs(mass).max() > 0


def test_page_names_every_function():
    text = read_page("distributed")
    public = [name for name, value in vars(distributed).items() if callable(value)]
    assert len(public) == 9
    assert [name for name in public if name not in text] == []
