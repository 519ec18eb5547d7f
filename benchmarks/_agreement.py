"""Robots from files in jaxdyn and in the engine whose home the format is: Pinocchio for URDF, MuJoCo for MJCF."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pinocchio as pin

import jaxdyn as jd
from jaxdyn.joints import Free, Spherical


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

    @property
    def worst(self) -> float:
        """The largest of all deviations."""
        return max(self.deviations.values())


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


def _deviation(got, want) -> float:
    got, want = np.asarray(got, float), np.asarray(want, float)
    if got.shape != want.shape:
        raise ValueError(f"shapes differ: {got.shape} and {want.shape}")
    if not want.size:
        return 0.0
    deviation = np.abs(got - want).max() / max(np.abs(want).max(), 1e-300)
    return float(deviation) if np.isfinite(deviation) else np.inf


def _timed(load) -> tuple[Any, float]:
    """The second of two loads, since the first one compiles what loading itself uses."""
    load()
    start = time.perf_counter()
    model = load()
    jax.block_until_ready(model.links)
    return model, 1e3 * (time.perf_counter() - start)


def _agreement(model, load_ms: float, got: dict, want: dict) -> Agreement:
    deviations = {key: _deviation(got[key], want[key]) for key in want}
    mass = float(np.asarray(model.links.mass).sum())
    return Agreement(model.num_links, model.nq, model.nv, mass, load_ms, len(model.report), deviations)


# --- MJCF ------------------------------------------------------------------------------------------


def mjcf_agreement(path: Path, **options) -> Agreement:
    """jaxdyn and MuJoCo on an MJCF file."""
    model, load_ms = _timed(lambda: jd.load_mjcf(path, **options))
    return compare_mujoco(model, mujoco.MjModel.from_xml_path(str(path)), load_ms)


def compare_mujoco(model, m, load_ms: float = 0.0) -> Agreement:
    """jaxdyn and MuJoCo on one random state."""
    q, v = random_state(model)
    got = {key: np.asarray(x) for key, x in _ours(model, q, v).items()}
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
    if m.nv:
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


def urdf_agreement(path: Path, floating: bool, **options) -> Agreement:
    """jaxdyn and Pinocchio on a URDF file; joints that mimic others do so in both."""
    model, load_ms = _timed(lambda: jd.load_urdf(path, floating_base=floating, **options))
    base = (pin.JointModelFreeFlyer(),) if floating else ()
    reference = pin.buildModelFromUrdf(str(path), *base, mimic=True)
    q, v = random_state(model)
    got = {key: np.asarray(x) for key, x in _ours(model, q, v).items()}
    want = _pinocchio_values(model, reference, q, v)
    got |= _placed(model, reference, got, want)
    return _agreement(model, load_ms, got, want)


def _pinocchio_values(model, reference, q, v) -> dict[str, np.ndarray]:
    """Pinocchio's values in our coordinates, where `v_pin = P v`."""
    data = reference.createData()
    there, tangent = _pinocchio_state(model, reference, q)
    upper = np.triu(pin.crba(reference, data, there))
    mass = upper + np.triu(upper, 1).T
    still, rotor = np.zeros(reference.nv), np.diag(reference.armature)
    pin.framesForwardKinematics(reference, data, there)
    frames = [data.oMf[reference.getFrameId(name, pin.FrameType.BODY)] for name in _bodies(model, reference)]
    bias = pin.rnea(reference, data, there, tangent @ v, still)
    return {
        "mass matrix": tangent.T @ (mass - rotor) @ tangent + np.diag(np.asarray(model.properties.armature)),
        "bias": tangent.T @ bias,
        "gravity": tangent.T @ pin.rnea(reference, data, there, still, still),
        "rotations": np.array([f.rotation for f in frames]).reshape(-1, 3, 3),
        "positions": np.array([f.translation for f in frames]).reshape(-1, 3),
    }


def _bodies(model, reference) -> list[str]:
    return [name for name in model.link_names if reference.existFrame(name, pin.FrameType.BODY)]


def _placed(model, reference, got, want) -> dict[str, np.ndarray]:
    rows = [model.link_index(name) for name in _bodies(model, reference)]
    return {key: got[key][rows].reshape(want[key].shape) for key in ("rotations", "positions")}


def _pinocchio_state(model, reference, q):
    """Pinocchio's configuration, and P."""
    there, tangent = np.zeros(reference.nq), np.zeros((reference.nv, model.nv))
    for name, joint in zip(reference.names[1:], reference.joints[1:], strict=True):
        if joint.shortname().startswith("JointModelMimic"):
            continue
        view = model.joint(model.joint_names[0] if name == "root_joint" else name)
        x, block = np.asarray(q)[view.q], np.eye(joint.nv)
        if joint.nv == 6:
            x, block = np.r_[x[4:], x[1:4], x[0]], np.roll(np.eye(6), 3, axis=0)
        elif joint.nq == 4 and joint.nv == 3:  # planar
            x = np.r_[x[:2], np.cos(x[2]), np.sin(x[2])]
        elif joint.nq == 2 and joint.nv == 1:  # continuous
            x = np.r_[np.cos(x[0]), np.sin(x[0])]
        there[joint.idx_q : joint.idx_q + joint.nq] = x
        tangent[joint.idx_v : joint.idx_v + joint.nv, view.v] = block
    return there, tangent
