"""Robots from files in jaxdyn and in the engine whose home the format is: Pinocchio for URDF, MuJoCo for MJCF."""

import contextlib
import time
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

import jaxdyn as jd
from jaxdyn.joints import Free, Spherical

EFFORTS = ("bias", "gravity", "passive")


@dataclass(frozen=True)
class Agreement:
    """One robot: its size, the time to load it, and largest deviations relative to the largest entry."""

    links: int
    nq: int
    nv: int
    mass: float
    load_ms: float
    notes: int
    deviations: dict[str, float]
    #: whether mimicking joints of the other engine were projected by hand
    projected: bool = False

    @property
    def worst(self) -> float:
        """The largest of all deviations."""
        return max(self.deviations.values(), default=0.0)


def urdf_files() -> dict[str, Path]:
    """The URDF files of the package example-robot-data, by their places in it."""
    files = metadata.files("example-robot-data") or []
    found = sorted((str(file), Path(str(file.locate())).resolve()) for file in files if file.suffix == ".urdf")
    return {name.partition("/robots/")[2]: path for name, path in found}


def mjcf_files() -> dict[str, Path]:
    """The MJCF files that come with MuJoCo and, if it is there, MJX."""
    folder = Path(mujoco.__file__).parent
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.xml"))}


@eqx.filter_jit
def _ours(model, q, v):
    """Everything in one function, so that a robot is compiled once."""
    poses = jd.forward_kinematics(model, q)
    return {
        "mass matrix": jd.mass_matrix(model, q),
        "bias": jd.bias_forces(model, q, v),
        "gravity": jd.gravity_forces(model, q),
        "rotations": poses.rotation,
        "positions": poses.translation,
        "passive": jd.passive_forces(eqx.tree_at(lambda m: m.properties.friction, model, jnp.zeros(model.nv)), q, v),
    }


def _nameless(model):
    """The model with numbers for names, so that robots with the same joints on the same tree are compiled once."""
    t = model.topology
    fields = ("link_names", "joint_names", "frame_names")
    topology = replace(t, **{field: tuple(map(str, range(len(getattr(t, field))))) for field in fields})
    return replace(model, topology=topology, info=type(model.info)(), actuators=(), closures=())


def random_state(model, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A configuration and a velocity with all coordinates of order one."""
    rng = np.random.default_rng(seed)
    q, v = rng.uniform(-1.5, 1.5, model.nq), rng.normal(size=model.nv)
    for _, view in _quaternions(model):
        at = slice(view.q.start, view.q.start + 4)
        q[at] = rng.normal(size=4)
        q[at] /= np.linalg.norm(q[at])
    return q, v


def _quaternions(model):
    for name in model.joint_names:
        view = model.joint(name)
        if isinstance(view.joint, Free | Spherical):
            yield name, view


def _deviation(got, want, nothing: float) -> float:
    """Largest difference against the largest entry wanted, or against `nothing` where no entry reaches that."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    if got.shape != want.shape:
        raise ValueError(f"shapes differ: {got.shape} and {want.shape}")
    if not want.size:
        return 0.0
    deviation = np.abs(got - want).max() / max(np.abs(want).max(), nothing)
    return float(deviation) if np.isfinite(deviation) else np.inf


def _timed(load) -> tuple[Any, float]:
    """The best of three loads after a first one, which compiles what loading itself uses."""
    model, best = load(), np.inf
    for _ in range(3):
        start = time.perf_counter()
        model = load()
        jax.block_until_ready(model.links)
        best = min(best, time.perf_counter() - start)
    return model, 1e3 * best


def _agreement(model, load_ms: float, got: dict, want: dict, projected: bool = False) -> Agreement:
    nothing = lambda key: 1e-9 if key in EFFORTS else 1e-300  # efforts may cancel but for rounding, N m or N
    deviations = {key: _deviation(got[key], want[key], nothing(key)) for key in want}
    mass = float(np.asarray(model.links.mass).sum())
    return Agreement(model.num_links, model.nq, model.nv, mass, load_ms, len(model.report), deviations, projected)


# --- MJCF ------------------------------------------------------------------------------------------


def mjcf_agreement(path: Path, **options) -> Agreement:
    """jaxdyn and MuJoCo on an MJCF file."""
    model, load_ms = _timed(lambda: jd.load_mjcf(path, **options))
    with mujoco_without_log():
        return compare_mujoco(model, mujoco.MjModel.from_xml_path(str(path)), load_ms)


@contextlib.contextmanager
def mujoco_without_log():
    """MuJoCo's warnings are dropped; it would write them to a file in the working directory."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def compare_mujoco(model, m, load_ms: float = 0.0) -> Agreement:
    """jaxdyn and MuJoCo on one random state; a model in which nothing moves has nothing to compare."""
    if not model.nv:
        return _agreement(model, load_ms, {}, {})
    q, v = random_state(model)
    got = {key: np.asarray(x) for key, x in _ours(_nameless(model), q, v).items()}
    rows = [model.link_index(m.body(b).name or f"body{b}") for b in range(1, m.nbody)]
    got |= {key: got[key][rows] for key in ("rotations", "positions")}
    return _agreement(model, load_ms, got, _mujoco_values(model, m, q, v))


def _mujoco_values(model, m, q, v) -> dict[str, np.ndarray]:
    """MuJoCo's values in our coordinates, where `v_mj = P v` and `a_mj = P a + (R (w x v), 0)` for a free joint."""
    data = mujoco.MjData(m)
    data.qpos[:], tangent, drift = _mujoco_state(model, q, v)
    mujoco.mj_forward(m, data)
    gravity = np.array(data.qfrc_bias)
    data.qvel[:] = tangent @ v
    mujoco.mj_forward(m, data)
    mass, shift = np.zeros((m.nv, m.nv)), np.zeros(m.nv)
    for row, unit in zip(mass, np.eye(m.nv), strict=True):
        mujoco.mj_mulM(m, data, row, unit)
    mujoco.mj_mulM(m, data, shift, drift)
    return {
        "mass matrix": tangent.T @ mass @ tangent,
        "bias": tangent.T @ (data.qfrc_bias + shift),
        "gravity": tangent.T @ gravity,
        "rotations": data.xmat[1:].reshape(-1, 3, 3),
        "positions": np.array(data.xpos[1:]),
        "passive": tangent.T @ _joint_passive(m, data),
    }


def _joint_passive(m, data) -> np.ndarray:
    """Linear springs and dampers of joints alone."""
    m.tendon_stiffness[:], m.tendon_damping[:] = 0, 0
    mujoco.mj_fwdPosition(m, data)
    mujoco.mj_fwdVelocity(m, data)
    return data.qfrc_spring + data.qfrc_damper


def _mujoco_state(model, q, v):
    """qpos, P, and the acceleration that MuJoCo's free joints have where ours have none."""
    qpos, tangent, drift = np.array(q), np.eye(model.nv), np.zeros(model.nv)
    for _, view in _quaternions(model):
        if not isinstance(view.joint, Free):
            continue
        x, block, world = np.array(q[view.q]), np.zeros((6, 6)), np.zeros(9)
        mujoco.mju_quat2Mat(world, x[:4])
        world = world.reshape(3, 3)
        block[:3, 3:], block[3:, :3] = world, np.eye(3)
        tangent[view.v, view.v] = block
        qpos[view.q] = np.r_[x[4:], x[:4]]
        drift[view.v.start : view.v.start + 3] = world @ np.cross(v[view.v][:3], v[view.v][3:])
    return qpos, tangent, drift


# --- URDF ------------------------------------------------------------------------------------------


class _Gear(NamedTuple):
    """A joint that follows another one: `q = ratio * q_source + offset`."""

    source: str
    ratio: float
    offset: float


def urdf_agreement(path: Path, floating: bool, **options) -> Agreement:
    """jaxdyn and Pinocchio on a URDF file; joints that mimic others do so in both."""
    model, load_ms = _timed(lambda: jd.load_urdf(path, floating_base=floating, **options))
    if not model.nv:
        return _agreement(model, load_ms, {}, {})
    reference, gears = _pinocchio_model(path, floating)
    q, v = random_state(model)
    got = {key: np.asarray(x) for key, x in _ours(_nameless(model), q, v).items()}
    want = _pinocchio_values(model, reference, gears, q, v)
    rows = [model.link_index(name) for name in _bodies(model, reference)]
    got |= {key: got[key][rows] for key in ("rotations", "positions")}
    return _agreement(model, load_ms, got, want, bool(gears))


def _pinocchio_model(path: Path, floating: bool) -> tuple[Any, dict[str, _Gear]]:
    """Pinocchio's model, and the gears that it leaves to us.

    Where a joint follows one that comes later in Pinocchio's order, its own treatment of mimicking joints refuses
    the file; then all joints are free there, and values are projected: `q = G q_own + c`, `G^T M G`, `G^T h`.
    """
    base = (pin.JointModelFreeFlyer(),) if floating else ()
    try:
        return pin.buildModelFromUrdf(str(path), *base, mimic=True), {}
    except ValueError:
        return pin.buildModelFromUrdf(str(path), *base), _gears(path)


def _gears(path: Path) -> dict[str, _Gear]:
    """Joints that mimic one of the file, through any others between."""
    tags = {joint.get("name", ""): joint.find("mimic") for joint in ElementTree.parse(path).getroot().findall("joint")}

    def gear(name: str) -> _Gear:
        tag = tags[name]
        if tag is None or tag.get("joint") not in tags:
            return _Gear(name, 1.0, 0.0)
        ratio, above = float(tag.get("multiplier", 1)), gear(tag.get("joint", ""))
        return _Gear(above.source, ratio * above.ratio, ratio * above.offset + float(tag.get("offset", 0)))

    return {name: gear(name) for name, tag in tags.items() if tag is not None and tag.get("joint") in tags}


def pinocchio_reads(path: Path) -> bool:
    """Whether Pinocchio can make a model of a URDF file."""
    try:
        pin.buildModelFromUrdf(str(path))
    except ValueError:
        return False
    return True


def _pinocchio_values(model, reference, gears, q, v) -> dict[str, np.ndarray]:
    """Pinocchio's values in our coordinates, where `v_pin = P v`."""
    data = reference.createData()
    there, tangent = _pinocchio_state(model, reference, gears, q)
    upper = np.triu(pin.crba(reference, data, there))
    mass, still = upper + np.triu(upper, 1).T, np.zeros(reference.nv)
    bias = np.array(pin.rnea(reference, data, there, tangent @ v, still))
    gravity = np.array(pin.rnea(reference, data, there, still, still))
    pin.framesForwardKinematics(reference, data, there)
    frames = [data.oMf[reference.getFrameId(name, pin.FrameType.BODY)] for name in _bodies(model, reference)]
    return {
        "mass matrix": tangent.T @ mass @ tangent,
        "bias": tangent.T @ bias,
        "gravity": tangent.T @ gravity,
        "rotations": np.array([f.rotation for f in frames]).reshape(-1, 3, 3),
        "positions": np.array([f.translation for f in frames]).reshape(-1, 3),
    }


def _bodies(model, reference) -> list[str]:
    return [name for name in model.link_names if reference.existFrame(name, pin.FrameType.BODY)]


def _pinocchio_state(model, reference, gears, q):
    """Pinocchio's configuration, and P."""
    there, tangent = np.zeros(reference.nq), np.zeros((reference.nv, model.nv))
    for name, joint in zip(reference.names[1:], list(reference.joints)[1:], strict=True):
        if joint.shortname().startswith("JointModelMimic"):
            continue
        source, ratio, offset = gears.get(name, _Gear(name, 1.0, 0.0))
        view = model.joint(source)
        x, block = ratio * np.asarray(q)[view.q] + offset, ratio * np.eye(joint.nv)
        if joint.nv == 6:
            x, block = np.r_[x[4:], x[1:4], x[0]], np.roll(np.eye(6), 3, axis=0)
        elif joint.nq == 4:  # planar
            x = np.r_[x[:2], np.cos(x[2]), np.sin(x[2])]
        elif joint.nq == 2:  # continuous
            x = np.r_[np.cos(x[0]), np.sin(x[0])]
        there[joint.idx_q : joint.idx_q + joint.nq] = x
        tangent[joint.idx_v : joint.idx_v + joint.nv, view.v] = block
    return there, tangent
