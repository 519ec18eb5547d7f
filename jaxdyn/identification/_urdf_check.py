"""The URDF of an identified robot, read back and compared with it."""

import os
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import bias_forces, mass_matrix, passive_forces
from jaxdyn.io import parse_urdf, write_urdf
from jaxdyn.io._paths import write_bytes
from jaxdyn.io._urdf_lost import _is_loaded, _lost
from jaxdyn.kinematics import forward_kinematics, random_configuration
from jaxdyn.model import Model
from jaxdyn.simulation import System
from jaxdyn.simulation._system import as_system

_STATES = 5


@dataclass(frozen=True)
class UrdfCheck:
    """What `write_checked_urdf` wrote, and what the file says of the robot."""

    text: str
    #: what the system has and URDF has no place for, in words
    lost: tuple[str, ...]
    #: greatest relative difference of each quantity between the file and the robot without what was lost
    differences: dict[str, float]

    def __str__(self) -> str:
        but = f" but for {'; '.join(self.lost)}, for which URDF has no place" if self.lost else ""
        return f"read back and equal{but}"


def write_checked_urdf(system: Model | System, path: str | os.PathLike[str] | None = None) -> UrdfCheck:
    """The URDF of a robot, written to `path` if one is given after it was read again and compared.

    Compared are mass matrices, bias forces, the efforts of damping and friction and the places of links in random
    states, and the limits of joints, after what URDF cannot hold was taken from the robot: that is listed in
    `lost`, parts of the `System` (drives, friction, motors) included, which `jaxdyn.save` keeps. A file that says
    something else than the robot is a `ModelError`, and not written.
    """
    system = as_system(system)
    model = system.model
    missing = dict(_lost(model))
    text = write_urdf(model, without=tuple(missing))
    again = parse_urdf(text)
    differences = _differences(_bare(model, again, set(missing)), again)
    allowed = max(1e-9, 1e3 * float(jnp.finfo(model.dtype).eps))
    for name, value in differences.items():
        if not value < allowed:
            raise ModelError(
                f"the URDF of the robot differs from it by {value:.2g} in its {name}; keep the robot by jaxdyn.save"
            )
    if path is not None:
        write_bytes(path, text.encode())
    parts = (f"the part {type(part).__name__}" for part in system.parts)
    return UrdfCheck(text, (*missing.values(), *parts), differences)


def _bare(model: Model, again: Model, missing: set[str]) -> Model:
    """The robot without what its file cannot hold."""
    if (again.nq, again.nv) != (model.nq, model.nv):
        raise ModelError(
            f"the URDF of the robot has nq {again.nq} and nv {again.nv}, the robot {model.nq} and {model.nv}; keep it "
            "by jaxdyn.save"
        )
    p = model.properties
    free = np.zeros(model.nv, bool)
    for name in model.joint_names:
        free[model.joint(name).v] |= _is_loaded(model, name)
    kept = {
        "armature": 0 * p.armature if "armature" in missing else p.armature,
        "stiffness": 0 * p.stiffness if "stiffness" in missing else p.stiffness,
        "friction_velocity": again.properties.friction_velocity
        if "friction_velocity" in missing
        else p.friction_velocity,
        "damping": jnp.where(free, 0, p.damping),
        "friction": jnp.where(free, 0, p.friction),
    }
    fields = lambda m: [getattr(m.properties, name) for name in kept]
    model = eqx.tree_at(fields, model, list(kept.values()))
    return eqx.tree_at(lambda m: m.gravity, model, again.gravity) if "gravity" in missing else model


def _differences(model: Model, again: Model) -> dict[str, float]:
    """Of what both say in random states, relative to the greatest number of each."""
    worst = {"joint limits": _apart(_limits(model), _limits(again))}
    same = tuple(name for name in model.link_names if name in again.link_names)
    for key in jax.random.split(jax.random.key(0), _STATES):
        q = random_configuration(model, key)
        v = jax.random.normal(key, (model.nv,), model.dtype)
        first, second = (_said(m, same, q, v) for m in (model, again))
        for name in first:
            worst[name] = max(worst.get(name, 0.0), _apart(first[name], second[name]))
    return worst


def _said(model: Model, links: tuple[str, ...], q, v) -> dict[str, Any]:
    rows = np.array([model.link_index(name) for name in links], int)
    found = _evaluated(model, q, v)
    found["poses"] = found["poses"][rows]
    return found


@jax.jit
def _evaluated(model: Model, q, v) -> dict[str, Any]:
    return {
        "mass matrix": mass_matrix(model, q),
        "bias forces": bias_forces(model, q, v),
        "damping and friction": passive_forces(model, q, v),
        "poses": forward_kinematics(model, q).translation,
    }


def _limits(model: Model):
    x = model.limits
    ends = jnp.concatenate([x.lower, x.upper, x.velocity, x.effort])
    return jnp.where(jnp.isfinite(ends), ends, jnp.where(ends > 0, 1e9, -1e9))


def _apart(a, b) -> float:
    return float(jnp.max(jnp.abs(a - b), initial=0) / (1e-300 + jnp.max(jnp.abs(a), initial=0)))
