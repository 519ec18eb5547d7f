"""docs/simulation.md runs, and names all parts, statuses and members of the contracts."""

import pytest

from jaxdyn import simulation
from jaxdyn.dynamics import AbstractMotion, AbstractPart, AbstractSampledPart
from tests.pages import read_page, run_page


@pytest.mark.slow
def test_the_page_runs_and_its_motor_has_the_current_of_the_closed_form():
    assert abs(run_page("simulation")["current"] - 1.08761548) < 1e-7


def test_the_page_names_every_part_status_and_member():
    text = read_page("simulation")
    parts = [
        c.__name__
        for c in vars(simulation).values()
        if isinstance(c, type) and issubclass(c, AbstractPart | AbstractSampledPart)
    ]
    assert [name for name in parts if name not in text and name != "Signal"] == []
    assert [name for name in sorted(AbstractPart.__abstractmethods__) if f"`{name}(" not in text] == []
    assert [name for name in sorted(AbstractMotion.__abstractmethods__) if f"`{name}`" not in text] == []
    assert [s.name for s in simulation.SimulationStatus if f"| `{s.name}` |" not in text] == []
