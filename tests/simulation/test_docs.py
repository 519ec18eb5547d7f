"""The code of docs/simulation.md runs, and its motor is the one of the reference cases."""

import re
from pathlib import Path

import pytest

from jaxdyn import simulation
from jaxdyn.dynamics import AbstractPart, AbstractSampledPart

PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)


def run(*texts: str) -> dict:
    names: dict = {"__name__": "simulation_page"}
    for text in texts:
        exec(compile(text, str(PAGE), "exec"), names)
    return names


@pytest.mark.slow
def test_the_part_on_the_page_is_the_motor_of_the_reference_cases():
    first, part, *_ = blocks()
    names = run("\n".join(line for line in first.splitlines() if line.startswith("import ")), part)
    assert abs(names["current"] - 1.08761548) < 1e-7


@pytest.mark.slow
@pytest.mark.wide
def test_the_page_runs():
    assert len(blocks()) == 4
    run(*blocks())


def test_the_page_names_every_part_solver_and_member():
    text = PAGE.read_text(encoding="utf-8")
    made = [
        c
        for c in vars(simulation).values()
        if isinstance(c, type) and issubclass(c, AbstractPart | AbstractSampledPart)
    ]
    assert [c.__name__ for c in made if c.__name__ not in text and c.__name__ != "Signal"] == []
    assert [k for k in sorted(AbstractPart.__abstractmethods__) if f"`{k}(" not in text] == []
    assert [s.name for s in simulation.SimulationStatus if f"| `{s.name}` |" not in text] == []
