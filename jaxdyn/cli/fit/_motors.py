"""Motors of a configuration of `jaxdyn fit`: their description and the parts that they become."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from jaxdyn import actuators
from jaxdyn._errors import ModelError
from jaxdyn.cli.schema import AbstractKind, Choice, Fields, ListOf, Number, OneOf, TableOf
from jaxdyn.identification import LoggedInputs
from jaxdyn.model import Model
from jaxdyn.simulation import Inputs

_POSITIVE, _ZERO_OR_MORE = Number(0, is_above=True), Number(0)
_COIL: Mapping[str, AbstractKind] = {
    "resistance": _POSITIVE,
    "inductance": _POSITIVE,
    "gear": Number(),
    "rotor_inertia": _ZERO_OR_MORE,
    "viscous": _ZERO_OR_MORE,
    "efficiency": Number(0, 1),
    "reverse_efficiency": Number(0, 1),
    "width": _POSITIVE,
    "voltage_limit": _POSITIVE,
    "current_limit": _POSITIVE,
    "saturation_width": _ZERO_OR_MORE,
    "input_quantity": Choice(("voltage", "current", "torque")),
    "friction": Fields(
        {
            "coulomb": _ZERO_OR_MORE,
            "static": _ZERO_OR_MORE,
            "stribeck_velocity": _POSITIVE,
            "width": _POSITIVE,
        },
        required={"coulomb": "the Coulomb friction of the rotor, N m"},
    ),
    "cogging": Fields(
        {"amplitude": _ZERO_OR_MORE, "periods": _POSITIVE, "phase": Number()},
        required={"amplitude": "the cogging torque, N m", "periods": "the periods per turn of the rotor"},
    ),
    "thermal": Fields(
        {
            "winding_capacity": _POSITIVE,
            "winding_resistance": _POSITIVE,
            "housing_capacity": _POSITIVE,
            "housing_resistance": _POSITIVE,
            **dict.fromkeys(("ambient", "reference", "resistance_coefficient", "constant_coefficient"), Number()),
        },
        required={
            "winding_capacity": "the heat capacity of the winding, J/K",
            "winding_resistance": "the thermal resistance of the winding, K/W",
        },
    ),
}
_RESISTANCE = {"resistance": "the resistance, ohm"}
#: a table of direct-current motors by joint, and one of synchronous motors
MOTORS = TableOf(
    Fields(
        {"constant": _POSITIVE, "back_emf": _POSITIVE, **_COIL},
        required={"constant": "the torque constant, N m/A", **_RESISTANCE},
    )
)
SYNCHRONOUS_MOTORS = TableOf(
    Fields(
        {"pole_pairs": _POSITIVE, "flux_linkage": _POSITIVE, **_COIL},
        required={"pole_pairs": "the number of pole pairs", "flux_linkage": "the flux linkage, V s", **_RESISTANCE},
    )
)
_EACH = OneOf((Number(), ListOf(Number(), 1)))
#: the calibration of logged inputs
INPUTS = Fields({"gain": _EACH, "offset": _EACH, "delay": Number(0)})
_MAKERS = {"motors": actuators.DcMotor, "synchronous_motors": actuators.SynchronousMotor}


def build_motors(
    model: Model,
    motors: Mapping[str, Mapping[str, Any]] | None,
    synchronous: Mapping[str, Mapping[str, Any]] | None,
    inputs: Mapping[str, Any] | None,
) -> tuple[Any, ...]:
    """The motors of both tables, and the calibration of their inputs if it is given."""
    parts: list[Any] = []
    for entry, table in (("motors", motors), ("synchronous_motors", synchronous)):
        for joint, numbers in (table or {}).items():
            if joint not in model.joint_names:
                raise ModelError(
                    f"fit.{entry}.{joint}: this robot has no such joint; expected one of {', '.join(model.joint_names)}"
                )
            try:
                motor = _MAKERS[entry](joint, **_as_arguments(model, numbers))
                motor.mount(model)  # raises for a joint that no motor can turn
            except ModelError as error:
                raise ModelError(f"fit.{entry}.{joint}: {error}") from None
            parts.append(motor)
    if inputs is None:
        return tuple(parts)
    if not parts:
        raise ModelError("fit.inputs calibrates the inputs of motors, and there are none; give fit.motors")
    return (*parts, Inputs(LoggedInputs(**_as_arrays(model, inputs))))


def _as_arguments(model: Model, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as arrays, and the tables of friction, cogging and heat as objects."""
    makers = {"cogging": actuators.Cogging, "thermal": actuators.ThermalModel, "friction": _friction}
    nested = {name: make(**_as_arrays(model, numbers[name])) for name, make in makers.items() if name in numbers}
    words = {name: x for name, x in numbers.items() if isinstance(x, str)}
    plain = {name: x for name, x in numbers.items() if name not in nested and name not in words}
    return {**_as_arrays(model, plain), **words, **nested}


def _friction(coulomb: jax.Array, static: jax.Array | None = None, **numbers: jax.Array) -> actuators.StribeckFriction:
    return actuators.StribeckFriction(coulomb, coulomb if static is None else static, **numbers)


def _as_arrays(model: Model, numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: jnp.asarray(x, model.dtype) for name, x in numbers.items()}
