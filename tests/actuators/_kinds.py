"""One actuator of each kind on the joint of a pendulum, with all of its options."""

import equinox as eqx
import jax
import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn.actuators import (
    Cogging,
    CoordinateFriction,
    DcMotor,
    HydraulicCylinder,
    LinearActuator,
    LinearEffort,
    LuGreFriction,
    PneumaticCylinder,
    SteppingMotor,
    StribeckFriction,
    SynchronousMotor,
    ThermalModel,
    joint_friction,
)

PENDULUM = jd.robots.pendulum()
JOINT = PENDULUM.joint_names[0]
#: data D1: gear ratios, rotor inertias, motor constants, resistances, inductances and bearing friction of two motors
D1 = {
    "gear": (50.0, 40.0),
    "rotor_inertia": (2e-4, 1e-4),
    "constant": (0.06, 0.05),
    "resistance": (1.2, 1.5),
    "inductance": (2e-3, 1.5e-3),
    "viscous": (1e-4, 8e-5),
}


def double_pendulum_motors(**changes):
    """The double pendulum and its two motors with the data D1."""
    arm = jd.robots.double_pendulum()
    numbers = {**D1, **changes}
    motors = tuple(
        DcMotor(name, **{key: x[k] if isinstance(x, tuple) else x for key, x in numbers.items()})
        for k, name in enumerate(arm.joint_names)
    )
    return arm, motors


class Crank(eqx.Module):
    """Displacement of a piston over a crank."""

    arm: jax.Array

    def __call__(self, q):
        return self.arm * jnp.sin(q) + 0.1 * q


_MOTOR = {
    "resistance": 1.2,
    "gear": 5.0,
    "rotor_inertia": 2e-3,
    "viscous": 1e-2,
    "voltage_limit": 24.0,
    "current_limit": 12.0,
    "saturation_width": 0.3,
    "cogging": Cogging(0.05, 6.0, 0.3),
}
_LUGRE = LuGreFriction(coulomb=0.1, static=0.2, stiffness=3.0, damping=0.05, stribeck_velocity=1.5)
_STRIBECK = StribeckFriction(coulomb=0.1, static=0.2, stribeck_velocity=1.5, width=0.5)
_LOSSES = {"efficiency": 0.8, "reverse_efficiency": 0.6, "width": 0.5}
_ONE_NODE = ThermalModel(0.5, 4.0, ambient=30.0, constant_coefficient=-0.001)
_TWO_NODES = ThermalModel(0.2, 1.5, 2.0, 3.0, ambient=30.0, constant_coefficient=-0.001)
_DC = jnp.array([[0, 1, 0], [-0.3, -0.5, 30.0], [0, -3.0, -60.0]])

#: actuators with their inputs
KINDS = {
    "dc": (
        DcMotor(
            JOINT,
            constant=0.6,
            back_emf=0.55,
            inductance=0.01,
            friction=_LUGRE,
            thermal=_TWO_NODES,
            **_MOTOR,
            **_LOSSES,
        ),
        15.0,
    ),
    "dc_without_inductance": (DcMotor(JOINT, constant=0.6, friction=_STRIBECK, thermal=_ONE_NODE, **_MOTOR), 15.0),
    "dc_current": (DcMotor(JOINT, constant=0.6, input_quantity="current", **_MOTOR), 8.0),
    "dc_torque": (DcMotor(JOINT, constant=0.6, input_quantity="torque", **_MOTOR, **_LOSSES), 12.0),
    "synchronous": (
        SynchronousMotor(
            JOINT,
            pole_pairs=7.0,
            flux_linkage=0.08,
            inductance=0.01,
            friction=_LUGRE,
            thermal=_TWO_NODES,
            **_MOTOR,
            **_LOSSES,
        ),
        15.0,
    ),
    "stepping": (
        SteppingMotor(JOINT, holding_torque=2.0, pole_pairs=6.0, viscous=0.05, rotor_inertia=2e-3, gear=5.0),
        1.7,
    ),
    "hydraulic": (
        HydraulicCylinder(
            JOINT,
            piston_area=1e-3,
            volume=4e-4,
            bulk_modulus=1e6,
            flow_gain=1e-3,
            flow_pressure=1e-9,
            mass=2.0,
            viscous=100.0,
            lever=0.2,
            input_limit=0.8,
        ),
        0.4,
    ),
    "hydraulic_crank": (
        HydraulicCylinder(
            JOINT,
            piston_area=1e-3,
            volume=4e-4,
            bulk_modulus=1e6,
            flow_gain=1e-3,
            flow_pressure=1e-9,
            mass=2.0,
            viscous=100.0,
            mechanism=Crank(jnp.array(0.2)),
        ),
        0.4,
    ),
    "pneumatic": (
        PneumaticCylinder(
            JOINT,
            piston_area=1e-3,
            volume=4e-4,
            pressure=6e5,
            flow_gain=1e-3,
            flow_pressure=1e-9,
            mass=2.0,
            viscous=100.0,
            lever=0.2,
        ),
        0.4,
    ),
    "linear": (
        LinearActuator(JOINT, _DC, [0, -4.0, 0.2], [0, 0.1, 15.0], gear=3.0, input_limit=20.0, saturation_width=0.2),
        12.0,
    ),
    "linear_crank": (LinearActuator(JOINT, _DC, -4.0, 15.0, mechanism=Crank(jnp.array(1.2))), 12.0),
    "linear_effort": (
        LinearEffort(JOINT, [-0.3, -0.1, 1.0], 0.05, [[0.1, 0.0, -20.0]], [0.2], [15.0], input_limit=20.0),
        12.0,
    ),
}
#: frictions of the coordinates
FRICTIONS = {
    "coordinate_friction": CoordinateFriction(_LUGRE),
    "joint_friction": joint_friction(
        PENDULUM, coulomb=0.5, viscous=0.1, stribeck=0.2, load_coefficient=0.1, load_width=0.5, width=0.3
    ),
}
