"""MuJoCo's `dcmotor` as an oracle where the models coincide: one constant, one node, no heat of friction."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.actuators import Cogging, DcMotor, LuGreFriction, MotorState, ThermalModel
from jaxdyn.simulation import State

#: MuJoCo takes the current at the end of a step, hence the short one
MODEL = """<mujoco><option gravity="0 0 0" timestep="1e-15"/><worldbody><body><joint name="j" axis="0 1 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="0.25 0.25 0.25"/></body></worldbody><actuator>
<dcmotor joint="j" gear="3" motorconst="0.06" resistance="1.2" {}/></actuator></mujoco>"""
THERMAL = 'thermal="4 15 0 0.00393 20 30"'
LUGRE = 'lugre="100 1 0.3 0.5 1.5"'
COGGING = 'cogging="0.1 8 0.3"'
INDUCTANCE = 'inductance="0.002 0"'
#: attributes of each case, and MuJoCo's activations: rise of temperature, deflection of the bristles, current
CASES = {
    "plain": ([], []),
    "inductance": ([INDUCTANCE], [0.4]),
    "thermal": ([THERMAL], [60.0]),
    "lugre": ([LUGRE], [0.002]),
    "cogging": ([COGGING], []),
    "all": ([INDUCTANCE, THERMAL, LUGRE, COGGING], [60.0, 0.002, 0.4]),
}


def _body():
    inertia = jd.spatial.Inertia(1.0, jnp.zeros(3), 0.25 * jnp.eye(3))
    return jd.ModelBuilder().add_link("body", "world", jd.joints.Revolute([0, 1, 0]), inertia).build()


@eqx.filter_jit
def _rate(system, q, v, state, voltage):
    return system.rate(0.0, State(q, v, (state,)), voltage)


@pytest.mark.slow("all", "plain")
@pytest.mark.parametrize("case", CASES)
def test_motor_matches_mujoco(case):
    mujoco = pytest.importorskip("mujoco")
    attributes, activations = CASES[case]
    oracle = mujoco.MjModel.from_xml_string(MODEL.format(" ".join(attributes)))
    data = mujoco.MjData(oracle)
    has = lambda attribute: attribute in attributes
    motor = DcMotor(
        _body().joint_names[0],
        constant=0.06,
        resistance=1.2,
        gear=3.0,
        inductance=0.002 if has(INDUCTANCE) else None,
        thermal=ThermalModel(15.0, 4.0, ambient=30.0, reference=20.0) if has(THERMAL) else None,
        friction=LuGreFriction(0.3, 0.5, 100.0, 1.0, 1.5) if has(LUGRE) else None,
        cogging=Cogging(0.1, 8, 0.3) if has(COGGING) else None,
    )
    system = jd.System(_body(), (motor,))
    given = dict(zip([x for x in (THERMAL, LUGRE, INDUCTANCE) if has(x)], activations, strict=True))
    temperature = 30.0 + jnp.array([given[THERMAL]]) if has(THERMAL) else None
    numbers = (jnp.asarray(given[x]) if has(x) else None for x in (INDUCTANCE, LUGRE))
    current, friction = numbers
    state = MotorState(current, temperature, friction) if activations else None
    for q, v, voltage in ((0.3, 0.7, 12.0), (-2.0, -40.0, 5.0), (1.0, 0.0, -9.0)):
        data.qpos[:], data.qvel[:], data.ctrl[:], data.act[:] = q, v, voltage, activations
        mujoco.mj_forward(oracle, data)
        rate = _rate(system, jnp.array([q]), jnp.array([v]), state, jnp.array([voltage]))
        np.testing.assert_allclose(rate.v, data.qacc, rtol=1e-10)  # the current moves by 6e-12 in a step
        own = rate.parts[0]
        if has(INDUCTANCE):
            # MuJoCo keeps the time constant L / R_0 of the cold winding, L di/dt = (u - R i - K w) R_0 / R
            warmth = motor.thermal.resistance_factor(temperature) if has(THERMAL) else 1.0
            np.testing.assert_allclose(own.current, data.act_dot[-1] * warmth, rtol=1e-11)
        if has(LUGRE):
            np.testing.assert_allclose(own.friction, data.act_dot[int(has(THERMAL))], rtol=1e-11, atol=1e-13)
        if has(THERMAL) and not has(LUGRE):  # MuJoCo's friction does not heat the winding
            np.testing.assert_allclose(own.temperature, data.act_dot[:1], rtol=1e-11)
