"""Trees that `save` wrote: the structure and the arrays are changed, and the archive is packed again."""

import functools
import io
import json
import random
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import jaxdyn as jd
from tests.fuzz.mutators import any_of, mutate_bytes, mutate_tree
from tests.fuzz.target import MAX_BYTES, Target, as_file, stored_regressions
from tests.fuzz.targets.npz import mutate_npy

_STRUCTURE = "structure.json"


def _save(tree: Any) -> bytes:
    with tempfile.TemporaryDirectory(prefix="jaxdyn-fuzz-") as folder:
        path = Path(folder, "tree")
        jd.save(path, tree)
        return path.read_bytes()


def _pack(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return file.getvalue()


def _wrap(tree: str | bytes, *arrays: bytes) -> bytes:
    """A file with any text for its tree."""
    text = tree if isinstance(tree, bytes) else tree.encode()
    head = b'{"format": "jaxdyn tree", "version": 1, "tree": ' + text + b"}"
    return _pack({_STRUCTURE: head, **{f"{k}.npy": array for k, array in enumerate(arrays)}})


def _seeds() -> list[bytes]:
    values = {
        "numbers": (1, 2.5, float("nan"), True, None, 10**30, 1j),
        "arrays": [np.arange(3), np.float32(2.5), np.zeros((2, 0)), np.array([True])],
        ("a", 3): jd.simulation.SimulationStatus.OK if hasattr(jd.simulation.SimulationStatus, "OK") else None,
        "function": jd.mass_matrix,
    }
    return [_save(values), _save(jd.robots.pendulum()), _save(jd.robots.double_pendulum())]


@functools.cache
def _names() -> tuple[str, ...]:
    """Names of everything that a public folder exports, and some that do not exist."""
    folders = [jd, *(getattr(jd, x) for x in dir(jd) if x[0] != "_" and hasattr(getattr(jd, x), "__path__"))]
    names = [f"{folder.__name__}.{x}" for folder in folders for x in dir(folder) if x[0] != "_"]
    return (*names, "jaxdyn.nothing.X", "jaxdyn.io.save", "os.system", "jaxdyn.simulation._a:B", "diffrax.Tsit5", "")


def _mutate_structure(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    structure = json.loads(members[_STRUCTURE])
    match rng.randrange(4):
        case 0 if len(members) > 1:
            name = rng.choice([x for x in members if x != _STRUCTURE])
            members[name] = mutate_npy(members[name], rng, seeds)
        case 1:
            _rename(structure, rng)
        case 2:
            _change_node(structure, rng)
        case _:
            structure = mutate_tree(structure, rng)
    text = json.dumps(structure).encode()
    members[_STRUCTURE] = text if rng.random() < 0.9 else mutate_bytes(text, rng, [text])
    return _pack(members, rng.choice((zipfile.ZIP_STORED,) * 9 + (zipfile.ZIP_DEFLATED,)))


def _nodes(tree: Any):
    if isinstance(tree, dict):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(child)


def _rename(structure: Any, rng: random.Random):
    """Names another class, function or enumeration; takes over the fields that it expects, in half of the cases."""
    keys = ("class", "function", "enum", "interpolation")
    nodes = [node for node in _nodes(structure) if set(node) & set(keys)]
    if not nodes:
        return
    node = rng.choice(nodes)
    key = next(x for x in keys if x in node)
    name = node[key] = rng.choice(_names())
    folder, _, last = name.rpartition(".")
    kind = getattr(functools.reduce(getattr, folder.split(".")[1:], jd), last, None) if folder in _folders() else None
    fields = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "_fields", None)
    if key == "class" and fields and rng.random() < 0.7:
        node["fields"] = {x: rng.choice((None, 1.5, {"tuple": []}, {"array": 0, "kind": "jax"})) for x in fields}


@functools.cache
def _folders() -> frozenset[str]:
    return frozenset(name.rpartition(".")[0] for name in _names() if name.startswith("jaxdyn.") and ":" not in name) - {
        "jaxdyn.nothing"
    }


def _change_node(structure: Any, rng: random.Random):
    """Changes an entry of an array node, or turns a node into one of another kind."""
    node = rng.choice(list(_nodes(structure)))
    arrays = [node for node in _nodes(structure) if "array" in node]
    if arrays and rng.random() < 0.7:
        node = rng.choice(arrays)
        node[rng.choice(list(node))] = rng.choice(
            (0, 1, -1, 10**9, "jax", "numpy", "scalar", "complex", "bfloat16", "float64", "int32", "bool", True, False)
        )
        return
    key = node.pop(rng.choice(list(node)), None)
    node[rng.choice(("int", "float", "tuple", "list", "dict", "enum", "function", "class"))] = key


def _regressions() -> dict[str, bytes]:
    long = "k" * 200_000
    item = '{"int": "1"}'
    return {
        **stored_regressions("tree")(),
        "long keys": _wrap(f'{{"dict": [["{long}", {{"list": [{", ".join([item] * 20_000)}]}}]]}}'),
        "duplicate keys": _wrap(f'{{"dict": [["a", {item}], ["a", {item}]]}}'),
        "nested": _wrap('{"list": [' * 500 + "1.5" + "]}" * 500),
        "deeply nested": _wrap("[" * 100_000),
        "digits": _wrap(f'{{"int": "{"9" * 5000}"}}'),
        "header": _wrap(
            '{"array": 0, "kind": "jax", "dtype": "float64", "weak": false}', b"\x93NUMPY\1\0\x0a\0'''\\\n\t x 1"
        ),
        "unknown names": _wrap('{"list": [' + ", ".join(['{"class": "jaxdyn.a._b:C", "fields": {}}'] * 9000) + "]}"),
    }


TARGETS = [
    Target(
        "tree",
        _seeds,
        as_file(".model", lambda path: jd.load(path, max_bytes=MAX_BYTES)),
        any_of(mutate_bytes, _mutate_structure, _mutate_structure),
        _regressions,
    )
]
