"""The description of a model that `jaxdyn info` prints."""

from collections.abc import Iterable, Sequence

import jax
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.constraints import described_constraints, mobility
from jaxdyn.kinematics import neutral
from jaxdyn.model import Closure, Model

_FIXED = "Fixed"


def describe(model: Model) -> str:
    """The tree, masses, degrees of freedom, limits and report of a model, as text for a terminal."""
    if model.links.mass.ndim != 1:
        raise ModelError(f"the model is a batch of shape {model.links.mass.shape[:-1]}; save a single robot")
    model = jax.tree.map(np.asarray, model)
    parts = (_summary, _tree, _coordinates, _springs, _mimics, _frames, _actuators, _closures, _notes)
    return "\n\n".join(text for part in parts if (text := part(model)))


def _section(title: str, lines: Iterable[str]) -> str:
    body = [f"  {_printable(line)}".rstrip() for line in lines]
    title = _printable(title)
    return "\n".join([title, "-" * len(title), *body]) if body else ""


def _printable(text: str) -> str:
    """Escapes control characters, which a terminal would execute: names come from files."""
    return "".join(x if x.isprintable() else x.encode("unicode_escape").decode() for x in text)


def _table(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Aligned columns: the first `left` of them to the left, the others to the right."""
    rows = [tuple(map(_printable, row)) for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    pad = lambda k, x: x.ljust(widths[k]) if k < left else x.rjust(widths[k])
    return ["  ".join(pad(k, x) for k, x in enumerate(row)).rstrip() for row in rows]


def _number(x: float | np.floating | np.ndarray | jax.Array) -> str:
    return "-" if np.isinf(x) else f"{float(x):.4g}"


def _summary(model: Model) -> str:
    moving = len(model.topology.bodies)
    roots = sum(parent < 0 for parent in model.topology.parents)
    facts = [
        ("links", f"{model.num_links} on {roots} root{'s' * (roots != 1)}"),
        ("moving joints", f"{moving}, of which {len(model.topology.mimics)} mimic others"),
        ("coordinates nq, nv", f"{model.nq}, {model.nv}"),
        ("mass", f"{float(np.sum(model.links.mass)):.6g} kg"),
        ("gravity", f"{' '.join(_number(x) for x in model.gravity)} m/s^2"),
        ("shapes", f"{len(model.shapes)}, of which {sum(s.collision for s in model.shapes)} for collisions"),
    ]
    return _section(model.name or "robot", _table(facts, 2))


def _kinds(model: Model) -> list[str]:
    return [_FIXED if g < 0 else type(model.joints[g]).__name__ for g in model.topology.groups]


def _tree(model: Model) -> str:
    """Every link below its parent."""
    t, kinds = model.topology, _kinds(model)
    last = {parent: i for i, parent in enumerate(t.parents)}
    stems: list[str] = []
    rows = [("link", "joint", "type", "mass, kg")]
    for i, parent in enumerate(t.parents):
        above = stems[parent] if parent >= 0 else ""
        is_last = last[parent] == i
        stems.append(above + ("   " if is_last else "│  "))
        name = above + ("└─ " if is_last else "├─ ") + t.link_names[i]
        rows.append((name, t.joint_names[i], kinds[i], _number(model.links.mass[i])))
    return _section("tree", _table(rows, 3))


def _coordinates(model: Model) -> str:
    """A line for each degree of freedom."""
    t, kinds, p, limits = model.topology, _kinds(model), model.properties, model.limits
    followers = {a for a, _ in t.mimics}
    head = ("joint", "type", "q", "v", "lower", "upper", "velocity", "effort", "damping", "friction", "armature")
    rows: list[tuple[str, ...]] = [head]
    for i in t.bodies:
        if i in followers:
            continue
        q, v = t.joint_slices(i)
        is_scalar = (q.stop - q.start) == (v.stop - v.start)
        for k in range(v.stop - v.start):
            ranges = [_number(x[q.start + k]) if is_scalar else "-" for x in (limits.lower, limits.upper)]
            others = (limits.velocity, limits.effort, p.damping, p.friction, p.armature)
            where = str(q.start + k) if is_scalar else (f"{q.start}..{q.stop - 1}" if k == 0 else "")
            name = (t.joint_names[i], kinds[i]) if k == 0 else ("", "")
            rows.append((*name, where, str(v.start + k), *ranges, *(_number(x[v.start + k]) for x in others)))
    return _section("degrees of freedom (SI units; - means none)", _table(rows, 2)) if len(rows) > 1 else ""


def _springs(model: Model) -> str:
    """Springs, and Coulomb friction whose smoothing velocity is not the default."""
    t, p = model.topology, model.properties
    rows: list[tuple[str, ...]] = [("joint", "v", "stiffness", "friction velocity")]
    for i in t.bodies:
        _, v = t.joint_slices(i)
        for k in range(v.start, v.stop):
            is_smoothed = p.friction[k] and p.friction_velocity[k] != np.asarray(0.01, p.friction_velocity.dtype)
            if p.stiffness[k] or is_smoothed:
                shown = (_number(p.stiffness[k]), _number(p.friction_velocity[k]) if p.friction[k] else "-")
                rows.append((t.joint_names[i], str(k), *shown))
    return _section("springs and friction (SI units)", _table(rows, 1)) if len(rows) > 1 else ""


def _frames(model: Model) -> str:
    links, names = model.topology.frame_links, model.frame_names
    rows = [("frame", "link"), *((name, model.link_names[i]) for name, i in zip(names, links, strict=True))]
    return _section("named frames", _table(rows, 2)) if names else ""


def _mimics(model: Model) -> str:
    names, lines = model.joint_names, []
    for k, (joint, source) in enumerate(model.topology.mimics):
        ratio, offset = model.mimic.ratio[k], model.mimic.offset[k]
        lines.append(f"{names[joint]} = {_number(ratio)} * {names[source]} + {_number(offset)}")
    return _section("joints that mimic others", lines)


def _actuators(model: Model) -> str:
    rows: list[tuple[str, ...]] = [("actuator", "joint", "gear", "lower", "upper")]
    for x in model.actuators:
        rows.append((x.name, x.joint, " ".join(_number(g) for g in x.gear), *(_number(u) for u in x.range)))
    return _section("actuators", _table(rows, 2)) if len(rows) > 1 else ""


def _closures(model: Model) -> str:
    rows = []
    for x in model.closures:
        if isinstance(x, Closure):
            rows.append((x.name, x.kind, f"{x.links[0]} to {x.links[1]}"))
        else:
            rows.append(
                (x.name, "coupling", f"{x.joint} is a function of {x.source}" if x.source else f"{x.joint} is constant")
            )
    if not rows:
        return ""
    free = int(jax.jit(lambda m: mobility(m, described_constraints(m), neutral(m)))(model))
    return _section(
        "closures",
        [*_table(rows, 3), f"the closures leave {free} of {model.nv} degrees of freedom at the neutral configuration"],
    )


def _notes(model: Model) -> str:
    notes = [str(note) for note in model.report]
    return (
        _section("assumed, changed or left out", notes)
        if notes
        else _section("report", ["nothing was assumed, changed or left out"])
    )
