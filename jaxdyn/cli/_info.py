"""`jaxdyn info`: what is in a robot file."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import jax
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.constraints import described_constraints, mobility
from jaxdyn.io import load, load_mjcf, load_urdf
from jaxdyn.kinematics import neutral
from jaxdyn.model import Closure, Model

_FIXED = "Fixed"


def read_model(path: Path, floating_base: bool, package_dirs: Sequence[Path], *, allow_absolute=False) -> Model:
    """The model in a URDF (.urdf), an MJCF (.xml, .mjcf) or a saved file (any other ending).

    `package_dirs` are the folders of meshes of a URDF, and those that an MJCF may read besides its own;
    `allow_absolute` lets names of meshes of a URDF be absolute paths.
    """
    kind = path.suffix.lower()
    if kind == ".urdf":
        return load_urdf(path, floating_base=floating_base, package_dirs=package_dirs, allow_absolute=allow_absolute)
    mjcf = kind in (".xml", ".mjcf")
    if floating_base or allow_absolute or (package_dirs and not mjcf):
        raise ModelError(
            f"{path}: --floating-base, --allow-absolute and --package-dir are for files that end in .urdf, "
            "the last for MJCF too"
        )
    if mjcf:
        return load_mjcf(path, roots=package_dirs)
    tree = load(path)
    if not isinstance(tree, Model):
        raise ModelError(f"{path}: holds a {type(tree).__name__}, not a model; give the file of a robot")
    return tree


def describe(model: Model) -> str:
    """Tree, masses, degrees of freedom, limits and report of a model, as text for a terminal."""
    if model.links.mass.ndim != 1:
        raise ModelError(f"the model is a batch of shape {model.links.mass.shape[:-1]}; save one robot of it")
    model = jax.tree.map(np.asarray, model)
    parts = (_summary, _tree, _coordinates, _springs, _geared, _frames, _actuators, _closures, _wrapped)
    return "\n\n".join(text for part in parts if (text := part(model)))


def _titled(title: str, lines: Iterable[str]) -> str:
    body = [f"  {_printable(line)}".rstrip() for line in lines]
    title = _printable(title)
    return "\n".join([title, "-" * len(title), *body]) if body else ""


def _printable(text: str) -> str:
    """A text without what a terminal would obey: names come from files."""
    return "".join(x if x.isprintable() else x.encode("unicode_escape").decode() for x in text)


def _table(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Columns in line, the first `left` of them to the left and the others to the right."""
    rows = [tuple(map(_printable, row)) for row in rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    pad = lambda k, x: x.ljust(widths[k]) if k < left else x.rjust(widths[k])
    return ["  ".join(pad(k, x) for k, x in enumerate(row)).rstrip() for row in rows]


def _number(x) -> str:
    return "-" if np.isinf(x) else f"{float(x):.4g}"


def _summary(model: Model) -> str:
    moving = len(model.topology.bodies)
    roots = sum(parent < 0 for parent in model.topology.parents)
    facts = [
        ("links", f"{model.num_links} on {roots} root{'s' * (roots != 1)}"),
        ("joints that move", f"{moving}, of which {len(model.topology.mimics)} mimic others"),
        ("coordinates nq, nv", f"{model.nq}, {model.nv}"),
        ("mass", f"{float(np.sum(model.links.mass)):.6g} kg"),
        ("gravity", f"{' '.join(_number(x) for x in model.gravity)} m/s^2"),
        ("shapes", f"{len(model.shapes)}, of which {sum(s.collision for s in model.shapes)} for collisions"),
    ]
    return _titled(model.name or "robot", _table(facts, 2))


def _kinds(model: Model) -> list[str]:
    return [_FIXED if g < 0 else type(model.joints[g]).__name__ for g in model.topology.groups]


def _tree(model: Model) -> str:
    """Every link below the one that carries it."""
    t, kinds = model.topology, _kinds(model)
    last = {parent: i for i, parent in enumerate(t.parents)}
    stems: list[str] = []
    rows = [("link", "joint", "type", "mass, kg")]
    for i, parent in enumerate(t.parents):
        above = stems[parent] if parent >= 0 else ""
        ends = last[parent] == i
        stems.append(above + ("   " if ends else "│  "))
        name = above + ("└─ " if ends else "├─ ") + t.link_names[i]
        rows.append((name, t.joint_names[i], kinds[i], _number(model.links.mass[i])))
    return _titled("tree", _table(rows, 3))


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
        scalar = (q.stop - q.start) == (v.stop - v.start)
        for k in range(v.stop - v.start):
            ranges = [_number(x[q.start + k]) if scalar else "-" for x in (limits.lower, limits.upper)]
            others = (limits.velocity, limits.effort, p.damping, p.friction, p.armature)
            where = str(q.start + k) if scalar else (f"{q.start}..{q.stop - 1}" if k == 0 else "")
            name = (t.joint_names[i], kinds[i]) if k == 0 else ("", "")
            rows.append((*name, where, str(v.start + k), *ranges, *(_number(x[v.start + k]) for x in others)))
    return _titled("degrees of freedom (SI units; - where there is none)", _table(rows, 2)) if len(rows) > 1 else ""


def _springs(model: Model) -> str:
    """Springs, and Coulomb friction that changes sign over another velocity than usual."""
    t, p = model.topology, model.properties
    rows: list[tuple[str, ...]] = [("joint", "v", "stiffness", "friction over")]
    for i in t.bodies:
        _, v = t.joint_slices(i)
        for k in range(v.start, v.stop):
            rubs = p.friction[k] and p.friction_velocity[k] != np.asarray(0.01, p.friction_velocity.dtype)
            if p.stiffness[k] or rubs:
                shown = (_number(p.stiffness[k]), _number(p.friction_velocity[k]) if p.friction[k] else "-")
                rows.append((t.joint_names[i], str(k), *shown))
    return _titled("springs and friction (SI units)", _table(rows, 1)) if len(rows) > 1 else ""


def _frames(model: Model) -> str:
    links, names = model.topology.frame_links, model.frame_names
    rows = [("frame", "link"), *((name, model.link_names[i]) for name, i in zip(names, links, strict=True))]
    return _titled("named frames", _table(rows, 2)) if names else ""


def _geared(model: Model) -> str:
    names, lines = model.joint_names, []
    for k, (joint, source) in enumerate(model.topology.mimics):
        ratio, offset = model.mimic.ratio[k], model.mimic.offset[k]
        lines.append(f"{names[joint]} = {_number(ratio)} * {names[source]} + {_number(offset)}")
    return _titled("joints that mimic others", lines)


def _actuators(model: Model) -> str:
    rows: list[tuple[str, ...]] = [("actuator", "joint", "gear", "least", "greatest")]
    for x in model.actuators:
        rows.append((x.name, x.joint, " ".join(_number(g) for g in x.gear), *(_number(u) for u in x.range)))
    return _titled("actuators", _table(rows, 2)) if len(rows) > 1 else ""


def _closures(model: Model) -> str:
    rows = []
    for x in model.closures:
        if isinstance(x, Closure):
            rows.append((x.name, x.kind, f"{x.links[0]} to {x.links[1]}"))
        else:
            rows.append((x.name, "coupling", f"{x.joint} follows {x.source or 'a constant'}"))
    if not rows:
        return ""
    free = int(jax.jit(lambda m: mobility(m, described_constraints(m), neutral(m)))(model))
    return _titled("closures", [*_table(rows, 3), f"they leave {free} of {model.nv} degrees of freedom at zero"])


def _wrapped(model: Model) -> str:
    notes = [str(note) for note in model.report]
    return _titled("assumed, changed or left out", notes) if notes else _titled("report", ["nothing was assumed"])
