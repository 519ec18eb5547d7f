"""Rules of docs/design.md and of the house style: each takes the folder of a package and lists violations."""

import ast
import enum
import functools
import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import equinox as eqx

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = {re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["dependencies"]}
EDGE_ONLY = {"matplotlib", "tqdm"}  # core dependencies that serve pictures and the command line

LAYERS = (
    {"_types", "_errors", "_numerics", "_status", "_submodules"},
    {"spatial"},
    {"beams"},
    {"joints", "recursion", "model"},
    {"robots", "io", "kinematics"},
    {"dynamics", "formulations"},
    {"actuators", "flexible", "constraints", "contact", "control", "paths"},
    {"simulation"},
    {"loads"},
    {"identification", "trajopt", "design"},
    {"distributed", "viz", "cli"},
)
LAYER = {unit: number for number, units in enumerate(LAYERS) for unit in units}
ORDERED_SIBLINGS = {("recursion", "joints"), ("model", "joints"), ("model", "recursion"), ("contact", "constraints")}
NEVER_IMPORTED = {"viz", "cli"}
MAX_LINES = 400
#: past participles without -ed
IRREGULAR = frozenset(
    """
    begun bent born bought bound brought built caught chosen come dealt done drawn driven fed felt found given
    gone grown heard held hidden kept known laid led left lent lost made meant met paid proven said seen sent
    shown shut spent spoken struck swept taken taught thought thrown told torn understood won worn woven
    written
    """.split()
)


# Reading a package


@functools.lru_cache(maxsize=512)
def _parse(text: str, path: str) -> ast.Module:
    return ast.parse(text, path)


def sources(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every Python file of a package with its syntax tree."""
    for path in sorted(root.rglob("*.py")):
        yield path, _parse(path.read_text(encoding="utf-8"), str(path))


def unit_of(root: Path, path: Path) -> str:
    """The folder or file directly under the package that holds `path`."""
    return path.relative_to(root).parts[0].removesuffix(".py")


class Import(NamedTuple):
    line: int
    module: str  # absolute, down to the name that `from` takes
    lazy: bool  # inside a function


def imports(root: Path, path: Path, tree: ast.Module) -> Iterator[Import]:
    """All imports of a file, relative ones resolved."""
    package = (root.name, *path.relative_to(root).parts[:-1])

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield from (Import(node.lineno, f"{module}.{alias.name}", lazy) for alias in node.names)
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        inside |= isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    return visit(tree, False)


def modules(root: Path) -> list[ModuleType]:
    """The package and every module in it, imported."""
    package = importlib.import_module(root.name)
    names = (info.name for info in pkgutil.walk_packages(package.__path__, f"{root.name}."))
    return [package, *map(importlib.import_module, names)]


def classes(root: Path) -> Iterator[type]:
    """Every class defined at the top level of a module of the package."""
    for module in modules(root):
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == module.__name__:
                yield value


def exports(root: Path, tree: ast.Module) -> Iterator[tuple[ast.ImportFrom, ast.alias]]:
    """What an `__init__` takes from its own package."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.level or node.module.partition(".")[0] == root.name):
            yield from ((node, alias) for alias in node.names)


# Rules


def known_units(root: Path) -> list[str]:
    """Every file and folder under the package has a layer."""
    found = {unit_of(root, path) for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    return [f"{unit}: has no layer" for unit in sorted(found - LAYER.keys() - {"__init__", "py.typed"})]


def dependencies_point_down(root: Path) -> list[str]:
    """A module imports from strictly lower layers; the command line's functions and type checkers may import all."""

    def allowed(source: str, target: str, lazy: bool) -> bool:
        if source == target or (source in ("cli", "__init__") and lazy):
            return True
        if target in NEVER_IMPORTED or target not in LAYER:  # not in a layer: the package's own __init__
            return False
        return source == "__init__" or LAYER[target] < LAYER[source] or (source, target) in ORDERED_SIBLINGS

    violations = []
    for path, tree in sources(root):
        source = unit_of(root, path)
        if source not in LAYER and source != "__init__":
            continue  # reported by known_units
        for line, module, lazy in imports(root, path, tree):
            package, _, rest = module.partition(".")
            if package == root.name and not allowed(source, rest.partition(".")[0], lazy):
                violations.append(f"{path}:{line}: {source} imports {module}")
    return violations


def dependencies_are_declared(root: Path) -> list[str]:
    """Importing the package needs its core dependencies alone, without what only the edge uses."""
    violations = []
    for path, tree in sources(root):
        known = {root.name, *CORE, *sys.stdlib_module_names}
        known -= set() if unit_of(root, path) in LAYERS[-1] else EDGE_ONLY
        for line, module, lazy in imports(root, path, tree):
            if not lazy and module.partition(".")[0] not in known:
                violations.append(f"{path}:{line}: {module} is not a core dependency")
    return violations


def modules_are_private(root: Path) -> list[str]:
    """Files are `_private.py`; an `__init__` defines nothing and re-exports as `X as X`."""
    violations = [f"{path}: is not private" for path, _ in sources(root) if not path.name.startswith("_")]
    for path, tree in sources(root):
        if path.name != "__init__.py":
            continue
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                violations.append(f"{path}:{node.lineno}: defines {node.name}")
        for node, alias in exports(root, tree):
            if alias.asname != alias.name:
                violations.append(f"{path}:{node.lineno}: {alias.name} is not exported as itself")
    return violations


def private_modules_stay_in_their_folder(root: Path) -> list[str]:
    """A module imports private modules and names of its own folder only; folders export what others need.

    Private units directly under the package, such as `_errors` and `_numerics`, are open to all.
    """
    violations = []
    for path, tree in sources(root):
        folder = (root.name, *path.relative_to(root).parts[:-1])
        for line, module, _ in imports(root, path, tree):
            parts = module.split(".")
            private = [k for k, part in enumerate(parts) if k > 1 and part[0] == "_" != part[1:2]]
            if parts[0] == root.name and private and tuple(parts[: private[0]]) != folder:
                violations.append(f"{path}:{line}: imports the private {module}")
    return violations


def functions_are_verbs_or_quantities(root: Path) -> list[str]:
    """No module-level function is named by a lone participle, which says neither what it does nor what it returns."""
    nouns = {"seed", "speed", "feed", "need", "bed", "quadruped"}
    violations = []
    for path, tree in sources(root):
        for node in tree.body:
            name = getattr(node, "name", "").strip("_") if isinstance(node, ast.FunctionDef) else ""
            if name in IRREGULAR or (name.endswith("ed") and "_" not in name and name not in nouns):
                violations.append(f"{path}:{node.lineno}: {node.name} is a participle")
    return violations


def files_are_short(root: Path) -> list[str]:
    """A file that grows past the limit hides two ideas."""
    counts = {path: path.read_text(encoding="utf-8").count("\n") for path, _ in sources(root)}
    return [f"{path}: {count} lines, at most {MAX_LINES}" for path, count in counts.items() if count > MAX_LINES]


def nothing_is_unfinished(root: Path) -> list[str]:
    """No markers of loose ends, no functions without a body unless they are abstract."""

    def empty(function: ast.FunctionDef) -> bool:
        body = function.body[1:] if ast.get_docstring(function) else function.body
        return all(
            isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in body
        )

    violations = []
    for path, tree in sources(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX|NotImplementedError)\b", line):
                violations.append(f"{path}:{number}: {line.strip()}")
        protocols = {
            method
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
            for method in node.body
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node not in protocols and empty(node):
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                if not re.search(r"\b(abstractmethod|overload)\b", decorators):
                    violations.append(f"{path}:{node.lineno}: {node.name} has no body")
    return violations


def public_names_are_documented(root: Path) -> list[str]:
    """Every exported class, function and folder has a docstring of its own."""

    def documented(value: object) -> bool:
        doc = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
        generated = f"{getattr(value, '__name__', '')}("  # a dataclass gets its signature for a docstring
        return bool(doc and doc.strip()) and not (inspect.isclass(value) and doc.startswith(generated))

    violations = [f"{root.name}: no docstring"] if not documented(importlib.import_module(root.name)) else []
    for path, tree in sources(root):
        if path.name != "__init__.py":
            continue
        name = ".".join((root.name, *path.relative_to(root).parts[:-1]))
        module = importlib.import_module(name)
        for _, alias in exports(root, tree):
            value = getattr(module, alias.name)
            home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None) or ""
            ours = home.partition(".")[0] == root.name and (inspect.ismodule(value) or callable(value))
            if ours and not documented(value):
                violations.append(f"{name}.{alias.name}: no docstring")
    return violations


def is_abstract(cls: type) -> bool:
    """Whether a class is made for subclassing: by its name, an abstract member, or as a protocol."""
    return (
        cls.__name__.lstrip("_").startswith("Abstract")
        or bool(getattr(cls, "__abstractmethods__", None) or getattr(cls, "__abstractvars__", None))
        or getattr(cls, "_is_protocol", False)
    )


def classes_are_abstract_or_final(root: Path) -> list[str]:
    """No class derives from a concrete one. Exceptions do, to be caught by; an enumeration with members is final."""
    return [
        f"{cls.__module__}.{cls.__name__}: derives from the concrete {base.__name__}"
        for cls in classes(root)
        if not issubclass(cls, BaseException | enum.Enum)
        for base in cls.__mro__[1:]
        if base.__module__.partition(".")[0] == root.name and not is_abstract(base)
    ]


def implemented_methods_are_final(root: Path) -> list[str]:
    """What a class implements, its subclasses leave alone."""
    generated = {*vars(type("Empty", (eqx.Module,), {})), *vars(object), "__check_init__", "__post_init__"}

    def implements(cls: type, name: str) -> bool:
        value = vars(cls).get(name)
        method = callable(value) or hasattr(value, "__get__")
        abstract = getattr(value, "__isabstractmethod__", False) or getattr(cls, "_is_protocol", False)
        return method and not abstract and name not in getattr(cls, "__dataclass_fields__", ())

    return [
        f"{cls.__module__}.{cls.__name__}: overrides {base.__name__}.{name}"
        for cls in classes(root)
        if not issubclass(cls, enum.Enum)  # Python generates members of each
        for name in vars(cls).keys() - generated
        for base in cls.__mro__[1:]
        if base.__module__.partition(".")[0] == root.name and implements(base, name)
    ]
