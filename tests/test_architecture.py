"""jaxdyn keeps the rules of `_architecture.py`, each of which finds what is planted in a small package."""

import functools
import json
import operator
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from . import _architecture as rules
from ._architecture import CORE, EDGE_ONLY, MAX_LINES, PROJECT, ROOT

PACKAGE = ROOT / "jaxdyn"

Rule = Callable[[Path], list[str]]

CASES: dict[Rule, list[tuple[dict[str, str], str]]] = {
    rules.known_units: [
        ({"helpers/_a.py": ""}, "helpers: has no layer"),
        ({"utils.py": ""}, "utils: has no layer"),
    ],
    rules.dependencies_point_down: [
        ({"spatial/_a.py": "from ..model import Model"}, "spatial imports {}.model.Model"),
        ({"spatial/_a.py": "def f():\n    import {}.model._model"}, "spatial imports {}.model._model"),
        ({"io/_a.py": "from ..kinematics import jacobian"}, "io imports {}.kinematics.jacobian"),
        ({"joints/_a.py": "from .. import model"}, "joints imports {}.model"),
        ({"contact/_a.py": "from ..actuators import Motor"}, "contact imports {}.actuators.Motor"),
        ({"simulation/_a.py": "from .. import viz"}, "simulation imports {}.viz"),
        ({"dynamics/_a.py": "import {} as jd"}, "dynamics imports {}"),
        ({"__init__.py": "from .cli import main as main"}, "__init__ imports {}.cli.main"),
        ({"cli/_a.py": "from .. import viz"}, "cli imports {}.viz"),
    ],
    rules.dependencies_are_declared: [
        ({"model/_a.py": "import scipy.linalg"}, "scipy.linalg is not a core dependency"),
        ({"model/_a.py": "from matplotlib import pyplot"}, "matplotlib.pyplot is not a core dependency"),
    ],
    rules.modules_are_private: [
        ({"model/builder.py": ""}, "builder.py: is not private"),
        ({"model/__init__.py": "def f(): return 1"}, "defines f"),
        ({"model/__init__.py": "from ._a import f"}, "f is not exported as itself"),
    ],
    rules.private_modules_stay_in_their_folder: [
        ({"model/_a.py": "from {}.spatial._b import f"}, "imports the private {}.spatial._b.f"),
        ({"model/_a.py": "from {}.spatial import _b"}, "imports the private {}.spatial._b"),
        ({"model/sub/_a.py": "from .._b import f"}, "imports the private {}.model._b.f"),
        ({"model/_a.py": "def f():\n    from .sub._b import g"}, "imports the private {}.model.sub._b.g"),
    ],
    rules.functions_are_verbs_or_quantities: [
        ({"model/_a.py": "def _moved(): return 1"}, "_moved is a participle"),
        ({"model/_a.py": "def told(): return 1"}, "told is a participle"),
    ],
    rules.files_are_short: [({"model/_a.py": "\n" * (MAX_LINES + 1)}, f"{MAX_LINES + 1} lines")],
    rules.nothing_is_unfinished: [
        ({"model/_a.py": "x = 1  # TODO: y"}, "TODO: y"),
        ({"model/_a.py": "def f():\n    raise NotImplementedError"}, "raise NotImplementedError"),
        ({"model/_a.py": "def f():\n    '''Doc.'''"}, "f has no body"),
        ({"model/_a.py": "class A:\n    def f(self): ..."}, "f has no body"),
    ],
    rules.public_names_are_documented: [
        (
            {"model/__init__.py": "'''Doc.'''\nfrom ._a import f as f", "model/_a.py": "def f(): return 1"},
            "model.f:",
        ),
        (
            {
                "model/__init__.py": "'''Doc.'''\nfrom ._a import A as A",
                "model/_a.py": "import equinox as eqx\nclass A(eqx.Module):\n    x: int",
            },
            "model.A:",
        ),
        ({"__init__.py": "'''Doc.'''\nfrom . import model as model", "model/__init__.py": ""}, ".model: no"),
        ({"__init__.py": ""}, "no docstring"),
    ],
    rules.classes_are_abstract_or_final: [
        ({"_a.py": "class A:\n    x = 1\nclass B(A):\n    y = 1"}, "_a.B: derives from the concrete A"),
        ({"_a.py": "import equinox as eqx\nclass A(eqx.Module): ...\nclass B(A): ..."}, "B: derives from"),
    ],
    rules.implemented_methods_are_final: [
        (
            {"_a.py": "class AbstractA:\n    def f(self): return 1\nclass B(AbstractA):\n    def f(self): return 2"},
            "_a.B: overrides AbstractA.f",
        ),
        (
            {
                "_a.py": "import equinox as eqx\n"
                "class AbstractA(eqx.Module):\n    @property\n    def p(self): return 1\n"
                "class B(AbstractA):\n    @property\n    def p(self): return 2"
            },
            "_a.B: overrides AbstractA.p",
        ),
    ],
}

SOUND = {
    "__init__.py": "'''Doc.'''\nfrom . import model as model\nfrom .model import f as f",
    "_types.py": "from typing import Protocol\nclass Law(Protocol):\n    def __call__(self, x): ...",
    "_errors.py": "class Error(Exception):\n    '''Doc.'''\nclass ModelError(Error):\n    '''Doc.'''",
    "joints/__init__.py": "'''Doc.'''\nfrom ._joint import AbstractJoint as AbstractJoint, Fixed as Fixed",
    "joints/_joint.py": """
        import abc
        import equinox as eqx
        class AbstractJoint(eqx.Module):
            '''Doc.'''
            rate: eqx.AbstractVar[float]
            @abc.abstractmethod
            def motion(self, q):
                '''Doc.'''
            @property
            def nq(self):
                return 0
        class Fixed(AbstractJoint):
            '''Doc.'''
            rate: float = 0.0
            def motion(self, q):
                return q
        """,
    "model/__init__.py": "'''Doc.'''\nfrom ._model import f as f",
    "model/_model.py": "from ..joints import Fixed\ndef f():\n    '''Doc.'''\n    return Fixed()",
    "viz/_plot.py": "import matplotlib.pyplot as plt\nfrom ..model import f",
    "cli/__init__.py": "'''Doc.'''\nfrom ._main import main as main",
    "cli/_main.py": "def main():\n    '''Doc.'''\n    from .. import viz\n    import {}\n    return viz",
}

NAME = operator.attrgetter("__name__")


# The rules, kept and able to fail


@pytest.fixture
def write_package(tmp_path, monkeypatch) -> Callable[[dict[str, str]], Path]:
    """A function that writes a package, `{}` in its files standing for its name, and returns its folder."""
    name = tmp_path.name
    monkeypatch.syspath_prepend(tmp_path)

    def write(files: dict[str, str]) -> Path:
        for file, text in {"__init__.py": "'''Doc.'''", **files}.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).replace("{}", name))
        return tmp_path / name

    yield write
    for module in [m for m in sys.modules if m.partition(".")[0] == name]:
        del sys.modules[module]


@pytest.mark.parametrize("rule", CASES, ids=NAME)
def test_rule(rule: Rule):
    assert rule(PACKAGE) == []


@pytest.mark.parametrize(
    ("rule", "files", "violation"),
    [
        pytest.param(rule, files, text, id=f"{rule.__name__}-{i}")
        for rule, cases in CASES.items()
        for i, (files, text) in enumerate(cases)
    ],
)
def test_rule_rejects(rule: Rule, files: dict[str, str], violation: str, write_package):
    root = write_package(files)
    (found,) = rule(root)
    assert violation.replace("{}", root.name) in found


@pytest.mark.parametrize("rule", CASES, ids=NAME)
def test_rule_accepts(rule: Rule, write_package):
    assert rule(write_package(SOUND)) == []


def test_all_units_are_found():
    assert {"__init__", "joints", "model", "dynamics"} <= {
        rules.unit_of(PACKAGE, path) for path, _ in rules.sources(PACKAGE)
    }
    assert len(list(rules.classes(PACKAGE))) > 1


# Importing


def python(code: str) -> str:
    """The standard output of code run by a new interpreter in the project's folder.

    The interpreter keeps compiled modules, as an installation does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


@functools.cache
def imported_dependencies() -> list[str]:
    """The declared core dependencies that `import jaxdyn` imports."""
    code = f"import sys, json, jaxdyn; print(json.dumps([n for n in {sorted(CORE)} if n in sys.modules]))"
    return json.loads(python(code))


IMPORT_EFFECTS = """
import {dependencies}
import json, logging, os, sys, warnings
import jax
from jax._src import xla_bridge

def state():
    loggers = dict(logging.root.manager.loggerDict, root=logging.root)
    return dict(
        config={{name: repr(value) for name, value in jax.config.values.items()}},
        handlers={{name: len(log.handlers) for name, log in loggers.items() if getattr(log, "handlers", ())}},
        level=logging.root.level,
        environment=dict(os.environ),
        warnings=len(warnings.filters),
    )

before, modules = state(), set(sys.modules)
import {package}
after = state()
after["config"] = {{name: after["config"].get(name) for name in before["config"]}}
print(json.dumps(dict(
    changed=[key for key in before if before[key] != after[key]],
    backends=xla_bridge.backends_are_initialized(),
    modules=sorted(set(sys.modules) - modules),
)))
"""


def import_effects(package: str, dependencies: list[str], path: Path = ROOT) -> dict:
    """What importing a package changes, once its dependencies are imported."""
    code = IMPORT_EFFECTS.format(package=package, dependencies=", ".join(dependencies))
    return json.loads(python(f"import sys; sys.path.insert(0, {str(path)!r})\n{code}"))


def test_import_has_no_side_effects():
    effects = import_effects("jaxdyn", sorted(CORE - EDGE_ONLY))
    assert effects["changed"] == []
    assert not effects["backends"]
    unwanted = {"jaxdyn.viz", "jaxdyn.cli", "mujoco", "pinocchio", "viser", *EDGE_ONLY}
    assert unwanted.isdisjoint(effects["modules"])


def test_import_side_effects_are_detected(write_package):
    root = write_package(
        {
            "__init__.py": "import jax, logging, os, warnings\n"
            "jax.config.update('jax_enable_x64', True)\njax.devices()\n"
            "logging.basicConfig(level=50)\nos.environ['A_FLAG'] = '1'\nwarnings.simplefilter('ignore')"
        }
    )
    effects = import_effects(root.name, ["jax"], root.parent)
    assert set(effects["changed"]) == {"config", "handlers", "level", "environment", "warnings"}
    assert effects["backends"]


@pytest.mark.slow
def test_import_is_fast():
    def seconds(*names: str) -> float:
        start, stop = "from time import process_time; s = process_time()", "print(process_time() - s)"
        return float(python(f"{start}; import {', '.join(names)}; {stop}"))

    dependencies = imported_dependencies()
    assert {"jax", "equinox"} <= set(dependencies)
    times = [(seconds("jaxdyn"), seconds(*dependencies)) for _ in range(3)]
    ours, theirs = map(min, zip(*times, strict=True))
    assert ours < 1.5 * theirs, f"import jaxdyn: {ours:.2f} s, its dependencies: {theirs:.2f} s"


# The project


def test_lower_bounds_are_those_tried():
    lines = (ROOT / "tests" / "lower_bounds.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    requirements = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    assert pins == dict(r.partition(";")[0].split(">=") for r in requirements if ">=" in r)
