"""`write_checked_urdf`: a URDF that was read back and compared with the robot."""

import os
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array
from jaxdyn.dynamics import bias_forces, mass_matrix, passive_forces
from jaxdyn.io import parse_urdf, write_urdf
from jaxdyn.io.files import write_bytes
from jaxdyn.io.urdf import has_limits_or_friction, unsupported_features
from jaxdyn.kinematics import forward_kinematics, random_configuration
from jaxdyn.model import Model
from jaxdyn.simulation import System
from jaxdyn.simulation.system import as_system

_STATES = 5


@dataclass(frozen=True)
class UrdfCheck:
    """The URDF text, its differences from the robot, and the properties that URDF cannot express."""

    text: str
    #: descriptions of the properties and parts that URDF cannot express
    lost: tuple[str, ...]
    #: maximum relative difference of each quantity between the file and the robot without the lost properties
    differences: dict[str, float]

    def __str__(self) -> str:
        exceptions = f" except for {'; '.join(self.lost)}, which URDF cannot express" if self.lost else ""
        return f"read back and equal{exceptions}"


def write_checked_urdf(system: Model | System, path: str | os.PathLike[str] | None = None) -> UrdfCheck:
    """Writes the URDF of a robot after reading it back and comparing it with the robot.

    The comparison covers mass matrices, bias forces, damping and friction, and link positions in random states, as well
    as joint limits. Properties that URDF cannot express, and the parts of a `System` (drives, friction, motors), are
    excluded and listed in `UrdfCheck.lost`; `jaxdyn.save` keeps all of them.

    Arguments:

    * `system`: the robot.
    * `path`: the file to write; default: no file, only the check.

    Returns a `UrdfCheck`. Raises `ModelError`, without writing, if the file differs from the robot.

    ```python
    import jaxdyn as jd
    from jaxdyn.identification import write_checked_urdf

    check = write_checked_urdf(jd.robots.pendulum())
    assert max(check.differences.values()) < 1e-4
    print(check)
    ```
    """
    system = as_system(system)
    model = system.model
    missing = dict(unsupported_features(model))
    text = write_urdf(model, without=tuple(missing))
    again = parse_urdf(text)
    differences = _relative_differences(_strip_inexpressible(model, again, set(missing)), again)
    allowed = max(1e-9, 1e3 * float(jnp.finfo(model.dtype).eps))
    for name, value in differences.items():
        if not value < allowed:
            raise ModelError(
                f"the URDF differs from the robot by {value:.2g} in its {name}; save the robot with jaxdyn.save"
            )
    if path is not None:
        write_bytes(path, text.encode())
    parts = (f"the part {type(part).__name__}" for part in system.parts)
    return UrdfCheck(text, (*missing.values(), *parts), differences)


def _strip_inexpressible(model: Model, again: Model, missing: set[str]) -> Model:
    """The robot without the properties that URDF cannot express."""
    if (again.nq, again.nv) != (model.nq, model.nv):
        raise ModelError(
            f"the URDF has nq {again.nq} and nv {again.nv}, the robot has {model.nq} and {model.nv}; save the robot "
            "with jaxdyn.save"
        )
    p = model.properties
    free = np.zeros(model.nv, bool)
    for name in model.joint_names:
        free[model.joint(name).v] |= has_limits_or_friction(model, name)
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


def _relative_differences(model: Model, again: Model) -> dict[str, float]:
    """Maximum difference of each quantity over random states, relative to its maximum magnitude."""
    greatest = {"joint limits": _relative_difference(_joint_limits(model), _joint_limits(again))}
    common = tuple(name for name in model.link_names if name in again.link_names)
    for key in jax.random.split(jax.random.key(0), _STATES):
        q = random_configuration(model, key)
        v = jax.random.normal(key, (model.nv,), model.dtype)
        first, second = (_quantities(m, common, q, v) for m in (model, again))
        for name in first:
            greatest[name] = max(greatest.get(name, 0.0), _relative_difference(first[name], second[name]))
    return greatest


def _quantities(model: Model, links: tuple[str, ...], q, v) -> dict[str, Array]:
    rows = np.array([model.link_index(name) for name in links], int)
    quantities = _evaluate(model, q, v)
    return {**quantities, "poses": quantities["poses"][rows]}


@jax.jit
def _evaluate(model: Model, q, v) -> dict[str, Array]:
    return {
        "mass matrix": mass_matrix(model, q),
        "bias forces": bias_forces(model, q, v),
        "damping and friction": passive_forces(model, q, v),
        "poses": forward_kinematics(model, q).translation,
    }


def _joint_limits(model: Model):
    x = model.limits
    ends = jnp.concatenate([x.lower, x.upper, x.velocity, x.effort])
    return jnp.where(jnp.isfinite(ends), ends, jnp.where(ends > 0, 1e9, -1e9))


def _relative_difference(a, b) -> float:
    return float(jnp.max(jnp.abs(a - b), initial=0) / (1e-300 + jnp.max(jnp.abs(a), initial=0)))
