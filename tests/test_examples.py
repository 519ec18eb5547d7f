"""The examples at the ends of docstrings run as they stand."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "jaxdyn"


def examples() -> Iterator[tuple[str, str]]:
    """Names of the documented objects and the Python blocks of their docstrings."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "```python" in text else ():
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                doc = inspect.cleandoc(ast.get_docstring(node) or "")
                blocks = re.findall(r"^ *```python\n(.*?)^ *```", doc, re.S | re.M)
                if blocks:
                    folder = ".".join(path.relative_to(PACKAGE).parts[:-1])
                    yield f"{folder}.{getattr(node, 'name', path.stem)}", "\n".join(map(textwrap.dedent, blocks))


EXAMPLES = list(examples())
#: examples that compile longest; slow tests run the same functions
LONG = {
    "constraints.ConstrainedMotion",
    "constraints.assemble",
    "constraints.gripping_load",
    "constraints.types.Distance",
    "constraints.types.RevoluteClosure",
    "contact.rigid.ContactFeedback",
    "control.OperationalSpace",
    "control.tracking_lqr",
    "formulations.Lagrange",
    "identification.excitation.design_excitation",
    "identification.methods.OutputError",
    "identification.methods.simulation_error",
    "identification.report.write_checked_urdf",
    "simulation.events.joint_stops",
    "simulation.solvers.CanonicalMomenta",
    "simulation.solvers.Variational",
    "trajopt.contact.solve_through_contact",
    "trajopt.ilqr.ilqr",
    "trajopt.interior_point.ipopt",
    "trajopt.phases.multi_phase",
    "trajopt.phases.phase_trajectories",
    "trajopt.problem.Solution",
    "trajopt.transcription.BackwardEuler",
    "trajopt.transcription.HermiteSimpson",
    "trajopt.transcription.MultipleShooting",
    "trajopt.transcription.Trapezoidal",
}


def cases():
    """The examples with their tiers."""
    for name, code in EXAMPLES:
        yield pytest.param(name, code, id=name, marks=pytest.mark.exhaustive if name in LONG else pytest.mark.slow)


@pytest.mark.parametrize(("name", "code"), list(cases()))
def test_example_runs(name: str, code: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, name, "exec"), {"__name__": "example"})


def test_entry_points_have_examples():
    assert len(EXAMPLES) >= 40
    assert LONG <= {name for name, _ in EXAMPLES}
    assert len({name for name, _ in EXAMPLES}) == len(EXAMPLES)
