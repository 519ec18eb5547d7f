"""Public functions of `(model, q, v, ...)`, found by their parameters, and valid arguments for each."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn import constraints, contact, dynamics, kinematics, simulation
from jaxdyn.constraints import PrescribedCoordinate
from jaxdyn.contact import Environment, FunctionalCoordinates, Gap, Plane, Point
from jaxdyn.joints import Free, Revolute
from jaxdyn.spatial import Pose, box

FOLDERS = (kinematics, dynamics, constraints, contact, simulation)
#: functions whose arguments have other meanings, with the reason
OTHERS = {
    "combine_batch": "takes results",
    "carried_state": "q and v are those of the robots without the load",
    "common_load": "assembles models",
    "equations_of_motion": "takes the states of the bodies, whose function has checked",
    "gripping_load": "assembles models",
    "on_surface": "assembles models",
    "with_environment": "assembles models",
    "linearise_system": "takes a state of the system",
    "mass_matrix_of_bodies": "an inner function: its callers have checked",
    "periodic_orbit": "takes a state of the system; tested apart",
    "power_flows": "takes a state of the system",
    "simulate_batch": "q0 and v0 are batches; tested apart",
    "store_nominal": "takes a reference over time",
    "system_lqr": "takes a state of the system",
    "tabulate_inputs": "takes a reference over time",
    "temperature_limit": "needs a motor with a temperature",
    "transmission_status": "takes a state of the system",
}
CONFIGURATIONS = ("q", "q0", "q1")
VELOCITIES = ("v", "v0", "dv", "a", "jerk", "tau", "force", "u")


def robot():
    """A free body with a hinged arm: `nq = 8`, `nv = 7`, two links."""
    b = jd.ModelBuilder()
    b.add_link("base", "world", Free(), box([0.3, 0.2, 0.1], mass=2.0))
    return b.add_link("arm", "base", Revolute([0, 1, 0]), box([0.1, 0.1, 0.4], mass=1.0)).build()


MODEL = robot()


def _chart(y, t=0.0):
    return jnp.concatenate([jnp.array([1.0, 0, 0, 0]), jnp.sin(y)])


def _values() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    vector = lambda n: jnp.asarray(rng.uniform(-0.5, 0.5, n))
    q = jnp.concatenate([jnp.array([1.0, 0, 0, 0]), vector(4)])
    return {
        "coordinates": FunctionalCoordinates("arm", "world", constrained=(2,)),
        "model": MODEL,
        "system": MODEL,
        **dict.fromkeys(CONFIGURATIONS, q),
        **{name: vector(7) for name in VELOCITIES},
        "external": vector((2, 6)),
        "gap": Gap("arm", Point(), "world", Plane()),
        "environment": Environment(0.5, 4000.0, 30.0),
        "name": "arm",
        "reference": jd.LOCAL,
        "target": Pose(jnp.eye(3), jnp.zeros(3)),
        "key": jax.random.key(0),
        "constraints": (PrescribedCoordinate("drive", "arm_joint", _zero),),
        "chart": _chart,
        "y": vector(4),
        "ydot": vector(4),
        "ts": jnp.array([0.0, 0.02]),
        "t": 0.0,
        "t0": 0.0,
        "dt": 0.01,
        "num_steps": 2,
    }


def _zero(t):
    return 0.0 * t


VALUES = _values()


def public_functions() -> dict[str, Callable]:
    """Functions of a model or a system, by name."""
    found = {
        name: f
        for folder in FOLDERS
        for name, f in vars(folder).items()
        if inspect.isfunction(f) and {"model", "system"} & set(inspect.signature(f).parameters) and name not in OTHERS
    }
    return dict(sorted(found.items()))


def valid_arguments(function: Callable) -> dict[str, Any]:
    """Arguments by name: all required ones, and optional ones that `VALUES` has."""
    parameters = inspect.signature(function).parameters
    missing = [p.name for p in parameters.values() if p.default is p.empty and p.name not in VALUES]
    assert not missing, f"{function.__name__} has the parameters {missing}: add values to VALUES, or a reason to OTHERS"
    return {name: VALUES[name] for name in parameters if name in VALUES}
