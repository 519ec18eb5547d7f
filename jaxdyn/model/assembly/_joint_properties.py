"""Properties of the joints as arrays, with defaults where a joint does not give one."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._numerics import is_concrete, namespace
from jaxdyn.joints import AbstractJoint, AbstractVectorJoint, Continuous, Planar
from jaxdyn.model.assembly._entries import LinkEntry

_NEUTRAL_ZERO = (AbstractVectorJoint.neutral, Continuous.neutral, Planar.neutral)
DEFAULTS = {
    "armature": 0.0,
    "damping": 0.0,
    "friction": 0.0,
    "friction_velocity": 0.01,
    "stiffness": 0.0,
    "velocity": np.inf,
    "effort": np.inf,
    "lower": -np.inf,
    "upper": np.inf,
}


def joint_property(links: list[LinkEntry], key: str, size: str, dtype):
    """One property of all joints; `size` is "nq" or "nv", the number of entries per joint."""
    defaults = [np.full(getattr(link.joint, size), DEFAULTS[key]) for link in links]
    return _concatenate_property(links, key, defaults, dtype)


def rest_configuration(links: list[LinkEntry], dtype):
    """Rest configuration of the springs, by default the neutral one."""
    return _concatenate_property(links, "rest", [_neutral_configuration(link.joint, dtype) for link in links], dtype)


def _neutral_configuration(joint: AbstractJoint, dtype):
    if type(joint).neutral in _NEUTRAL_ZERO:
        return np.zeros(joint.nq, dtype)  # without a JAX operation per joint
    with jax.ensure_compile_time_eval():  # so that constants are concrete inside a traced function as well
        x = joint.neutral(dtype)
    return np.asarray(x) if is_concrete(x) else x


def _concatenate_property(links: list[LinkEntry], key: str, defaults, dtype):
    """Values of one property of all joints, concatenated; the default where a joint does not give it."""
    values = [link.properties.get(key, default) for link, default in zip(links, defaults, strict=True)]
    xp = namespace(values)
    parts = []
    for link, value, default in zip(links, values, defaults, strict=True):
        value = xp.asarray(value, dtype)
        if value.shape not in ((), default.shape):
            raise ModelError(
                f"joint {link.joint_name!r}: {key} has shape {value.shape}, expected {default.shape} or a number"
            )
        parts.append(xp.broadcast_to(value, default.shape))
    return jnp.asarray(xp.concatenate(parts) if parts else np.zeros(0, dtype), dtype)
