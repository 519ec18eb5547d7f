"""Small systems with all classes of parts, controllers and events that have numbers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

import jaxdyn as jd
import jaxdyn.actuators as ac
import jaxdyn.control as ct
import jaxdyn.simulation as sim
from jaxdyn.beams import Beam, Material, Tube
from jaxdyn.flexible import Lump, ModalDamping, add_flexible_link
from jaxdyn.spatial import Inertia, Pose, box, rpy_to_matrix

ARM = jd.robots.double_pendulum()
PENDULUM = jd.robots.pendulum()
JOINT = PENDULUM.joint_names[0]
UPPER, LOWER = ARM.joint_names
PLANE = ct.POSITION[[0, 2]]


class Case(NamedTuple):
    """A system, the state at its start, and what happens during `steps` fixed steps of `dt`."""

    system: sim.System
    q: Any
    v: Any
    inputs: Any = None
    #: states of the parts at the start
    parts: Any = None
    events: tuple[sim.Event, ...] = ()
    steps: int = 6
    dt: float = 0.004
    #: numbers that may have no effect, as their last names
    without_effect: frozenset[str] = frozenset()


class Wave(eqx.Module):
    """A function of time with a number: of one or several values, or a matrix."""

    size: jax.Array
    phases: jax.Array

    def __call__(self, t):
        return self.size * jnp.sin(3 * t + self.phases)


class Wall(eqx.Module):
    """A plane, with its distance."""

    place: jax.Array

    def __call__(self, p):
        return p[0] - self.place


class Law(eqx.Module):
    """A law `(t, q, v)`, or `(t, state)`."""

    gain: jax.Array

    def __call__(self, t, *state):
        q, v = state if len(state) == 2 else (state[0].q, state[0].v)
        return self.gain * (q + 0.3 * v) + jnp.sin(t)


def _table(columns, shift=0.0):
    return jnp.sin(jnp.arange(6.0)[:, None] + jnp.arange(columns) + shift)


TIMES = jnp.linspace(-0.0031, 0.0327, 6)  # no step has an end or a stage at a knot


def efforts() -> Case:
    """Efforts, wrenches, signals, drives, friction and couplings, all at once."""
    smooth = {"stribeck": 0.4, "stribeck_velocity": 0.8, "load_coefficient": 0.1, "load_width": 2.0, "width": 0.7}
    bristles = ac.LuGreFriction(0.4, 0.7, 6.0, 0.5, 1.2)
    parts = (
        sim.Effort(jnp.array([0.4, -0.3])),
        sim.Feedback(Law(jnp.array([-3.0, 2.0]))),
        sim.linear_signal(TIMES, _table(2)),
        sim.cubic_signal(TIMES, _table(2, 1.0)),
        sim.Signal(diffrax.LinearInterpolation(TIMES, _table(2, 2.0))),
        sim.Wrench("lower", jnp.array([0.1, 0.2, 0.3, 2.0, 1.0, -1.0])),
        ac.drive(ARM, gain=2.0, offset=0.3, delay=0.0013, command=diffrax.LinearInterpolation(TIMES, _table(2, 0.5))),
        ac.joint_friction(ARM, coulomb=0.3, viscous=0.2, **smooth),
        ac.CoordinateFriction(bristles),
        ac.CoordinateFriction(ac.StribeckFriction(0.3, 0.5, 1.1, 0.6), (LOWER,)),
        ac.ElasticCoupling(LOWER, UPPER, [0.1, -0.8, 0.3], ac.CubicSpring(30.0, 50.0), 0.5),
        ac.ElasticCoupling(UPPER, LOWER, [0.0, 1.0], ac.PiecewiseLinearSpring([0.1, 0.5, 2.0], [2.0, 20.0, 90.0])),
        ac.ElasticCoupling(UPPER, LOWER, [0.2], ac.LinearSpring(12.0)),
    )
    return Case(jd.System(ARM, parts), [0.4, -0.7], [0.8, -0.5])


def elastic_transmission() -> Case:
    """Three stages with springs, backlash and hysteresis, behind a heated motor with losses, friction and cogging."""
    stages = (
        ac.Stage(4.0, ac.CubicSpring(40.0, 30.0), 0.2, 1e-2, 2e-2),
        ac.Stage(3.0, 90.0, 0.4, 5e-2, hysteresis=ac.BoucWen(3.0, 0.05, 0.8, 1.5)),
        ac.Stage(2.0, ac.LinearSpring(300.0), 0.6, 0.2, 0.1, backlash=ac.Backlash(0.02, 0.01)),
    )
    robot, springs = ac.add_elastic_transmission(PENDULUM, JOINT, stages)
    motor = ac.DcMotor(
        springs.shafts[0],
        constant=0.6, back_emf=0.5, resistance=1.2, inductance=0.05, gear=2.0, rotor_inertia=2e-3, viscous=1e-2,
        efficiency=0.9, reverse_efficiency=0.7, width=0.5, voltage_limit=24.0, current_limit=12.0, saturation_width=0.3,
        friction=ac.StribeckFriction(0.02, 0.05, 1.5, 0.5), cogging=ac.Cogging(0.05, 6.0, 0.3),
        thermal=ac.ThermalModel(0.2, 1.5, 2.0, 3.0, ambient=30.0, constant_coefficient=-0.001),
    )  # fmt: skip
    q = jnp.zeros(robot.nq).at[robot.joint(springs.shafts[0]).q.start].set(3.0)
    q = q.at[robot.joint(springs.shafts[1]).q.start].set(0.6).at[robot.joint(springs.shafts[2]).q.start].set(0.043)
    parts = ((None, jnp.array(0.3), None), None, None)  # the hysteresis reverses
    return Case(jd.System(robot, (springs, motor)), q, 0.3 * jnp.ones(robot.nv), jnp.array([15.0]), parts)


def elastic_support() -> Case:
    """A pendulum on a base with springs of six axes, with the weight of one configuration."""
    stiffness = jnp.diag(jnp.array([90.0, 80.0, 70.0, 900.0, 800.0, 700.0])) + 5.0
    base, rest = box([0.4, 0.4, 0.2], mass=5.0), Pose.from_quaternion([0.9, 0.1, 0.3, 0.2], [0.1, 0.2, 0.3])
    options = {"base": base, "damping": 3.0, "rest": rest, "equilibrium": jnp.array([0.2])}
    robot, support = ac.on_elastic_support(PENDULUM, stiffness, **options)
    q = jd.integrate(robot, jd.neutral(robot), jnp.array([0.1, 0.2, -0.1, 0.05, 0.1, 0.2, 0.5]))
    return Case(jd.System(robot, (support,)), q, 0.1 * jnp.arange(7.0))


def sampled() -> Case:
    """Sampled efforts, whose periods and delays decide when they change."""
    held = sim.HeldSignal(_table(2), 0.0053, 0.0017)
    digital = sim.SampledFeedback(Law(jnp.array([-3.0, 2.0])), 0.0047, 0.0013)
    return Case(jd.System(ARM, (held, digital)), [0.4, -0.7], [0.8, -0.5])


def _motors():
    numbers = {"constant": 0.06, "resistance": 1.2, "rotor_inertia": 2e-4, "inductance": 2e-2, "viscous": 1e-4}
    return tuple(ac.DcMotor(name, gear=40.0 + 10 * k, **numbers) for k, name in enumerate(ARM.joint_names))


def _cascade():
    gains = {"velocity_integral": 4.0, "acceleration_gain": 0.2, "velocity_feedforward": 0.9, "limit": 1.0}
    reference = ct.PathReference(Wave(jnp.array(0.5), jnp.array([0.2, 0.4])))
    servo = ct.ServoControl(reference, position_gain=[6.0, 5.0], velocity_gain=0.4, **gains)
    return ct.CascadedControl(servo, current_gain=3.0, current_integral=20.0, voltage_limit=2.0)


def _inputs(source) -> Case:
    # motors without losses and limits
    unused = frozenset({"width", "saturation_width"})
    return Case(jd.System(ARM, (*_motors(), source)), [0.4, -0.7], [0.8, -0.5], without_effect=unused)


def cascade() -> Case:
    return _inputs(sim.Inputs(_cascade()))


def sampled_cascade() -> Case:
    """Sampled inputs, with their period and delay."""
    return _inputs(sim.SampledInputs(_cascade(), 0.0047, 0.0013))


def constant_inputs() -> Case:
    return _inputs(sim.Inputs(jnp.array([4.0, -3.0])))


def path_of_inputs() -> Case:
    return _inputs(sim.Inputs(diffrax.LinearInterpolation(TIMES, _table(2))))


def law_of_inputs() -> Case:
    return _inputs(sim.Inputs(Law(jnp.array([-3.0, 2.0]))))


def table_of_inputs() -> Case:
    return _inputs(sim.held_inputs(_table(2), 0.0053, 0.0017))


def stored_feedforward() -> Case:
    return _feedforward(is_measured=False)


def measured_feedforward() -> Case:
    return _feedforward(is_measured=True)


def _feedforward(is_measured) -> Case:
    """Inputs that a reference requires, and feedback of the error."""
    system = jd.System(ARM, _motors())
    reference = ct.PathReference(Wave(jnp.array(0.5), jnp.array([0.2, 0.4])))
    nominal = sim.MeasuredNominal(system, reference) if is_measured else sim.store_nominal(system, reference, TIMES)
    case = _inputs(sim.Inputs(sim.InputFeedback(nominal, [20.0, 15.0], 3.0, 8.0)))
    # the accelerations of the table, and the currents at its start
    unused = frozenset() if is_measured else frozenset({"table[0][2]", "table[1][2]", "current"})
    return case._replace(without_effect=case.without_effect | unused)


def state_feedback() -> Case:
    """The regulator of a driven arm, whose gain, operating point and inputs are numbers."""
    system = jd.System(ARM, _motors())
    state = system.initial(jnp.array([0.1, 0.2]), jnp.zeros(2))
    shape = eqx.filter_eval_shape(sim.system_lqr, system, state, jnp.zeros(2), jnp.eye(6), jnp.eye(2)).controller
    gain = jnp.cos(jnp.arange(12.0)).reshape(2, 6)
    numbers = lambda c: (c.state, c.inputs, c.gain)
    values = state, jnp.array([1.0, -2.0]), gain
    return _inputs(sim.Inputs(eqx.tree_at(numbers, shape, values)))


def control_laws() -> Case:
    """All laws `(t, q, v)` of joint space and task space, added."""
    reference = ct.PathReference(Wave(jnp.array(0.5), jnp.array([0.2, 0.4])))
    plan = ct.Plan(TIMES, _table(2), _table(2, 1.0), _table(2, 2.0))
    target = Pose(jnp.eye(3), jnp.array([0.5, 0.0, -1.2]))
    posture = {"posture": jnp.array([0.3, 0.4]), "posture_kp": 2.0, "posture_kd": 0.4, "damping": 0.3}
    task = {"rows": PLANE, **posture}
    gains = jnp.cos(jnp.arange(48.0)).reshape(6, 2, 4)
    laws = (
        ct.GravityPD(ARM, reference, 4.0, [0.5, 0.7]),
        ct.ComputedTorque(ARM, reference, 4.0, 0.6),
        ct.ReferenceFeedforward(ARM, reference, 3.0, 0.6),
        ct.StateFeedforward(ARM, reference, 3.0, 0.6),
        ct.StoredFeedforward(ARM, plan, 3.0, 0.6),
        ct.LinearFeedback(ARM, [0.2, 0.1], [0.1, 0.3], [1.0, 2.0], gains[0], jnp.eye(2) + 0.1),
        ct.TrackingFeedback(ARM, plan, gains, jnp.eye(2) + 0.1),
        ct.OperationalSpace(ARM, "tip", target, 9.0, 3.0, **task),
        ct.Impedance(ARM, "tip", target, 9.0, 3.0, inertia=jnp.eye(2) * 2.0, measured=Push(jnp.ones(2)), **task),
        ct.HybridPositionForce(
            ARM, "tip", target, Wall(jnp.array(0.6)), Wave(jnp.array(2.0), jnp.array(0.4)), 9.0, 3.0, 1.0,
            Push(jnp.array(1.0)), 0.3, **posture,
        ),
    )  # fmt: skip
    # the task is a position, and the wall is plane
    system, unused = jd.System(ARM, tuple(sim.Feedback(law) for law in laws)), frozenset({"rotation", "place"})
    return Case(system, [0.4, 0.9], [0.8, -0.5], steps=4, without_effect=unused)


class Push(eqx.Module):
    """A measured wrench."""

    size: jax.Array

    def __call__(self, t, q, v):
        return self.size * jnp.cos(q[0])


def elastic_joint_control() -> Case:
    robot, springs = ac.add_elastic_transmission(PENDULUM, JOINT, ac.Stage(20.0, 400.0, 1.0, 2e-3))
    reference = ct.PathReference(Wave(jnp.array(0.5), jnp.array([0.2, 0.4])))
    law = ct.ElasticJointPD(robot, (springs,), reference, 40.0, 4.0, torque_gain=0.5, torque_rate_gain=0.01)
    q = jnp.array([0.3, 0.3]).at[robot.joint(springs.shafts[0]).q.start].set(6.5)
    unused = frozenset({"damping", "input_inertia"})  # of the transmission that the law knows
    return Case(jd.System(robot, (springs, sim.Feedback(law))), q, jnp.ones(2), steps=4, without_effect=unused)


def flexible_link() -> Case:
    """A soft tapered beam on a hinge, with material damping and ratios of its modes."""
    material = Material.isotropic(1e3, 1e6, 0.3, yield_strength=1e7, retardation_time=2e-3)
    placement = Pose(rpy_to_matrix([0.2, 1.3, 0.1]), [0.1, 0.02, 0.03])
    beam = Beam(Tube(0.02, 0.01), material, 0.5, Tube(0.015, 0.012), placement)
    inertia = 1e-3 * jnp.eye(3) + 1e-4  # without zeros, for which steps of differences would be large
    lumps = (Lump(Inertia(0.1, [0.01, 0.02, 0.03], inertia), 0.6),)
    builder = jd.ModelBuilder()
    hinge = jd.joints.Revolute([0, 1, 0])
    part = add_flexible_link(builder, "arm", "world", hinge, beam=beam, sublinks=1, lumps=lumps)
    damping = ModalDamping(part.joint_names, [0.02, 0.03, 0.04])
    system = jd.System(builder.build(), (part, damping))
    return Case(system, [0.3, 0.2, -0.1, 0.2], [0.5, 0.4, -0.6, 0.3], without_effect=frozenset({"yield_strength"}))


def stops() -> Case:
    """A rebound, whose time depends on the place of the stop."""
    guard = sim.Event(sim.events.Coordinate(0, jnp.array(0.43)), sim.Rebound(0, jnp.array(0.7)), direction=1)
    return Case(jd.System(ARM), [0.4, -0.7], [1.5, -0.5], events=(guard,))


def temperature_event() -> Case:
    """A reset at a temperature."""
    motor = ac.DcMotor(JOINT, constant=0.3, resistance=1.0, gear=3.0, thermal=ac.ThermalModel(0.5, 4.0))
    system = jd.System(PENDULUM, (motor,))
    kick = lambda model, t, q, v, parts: (q, v + 0.5, parts)
    event = sim.temperature_limit(system, JOINT, jnp.array(26.0), terminal=False, reset=kick)
    unused = frozenset({"width", "saturation_width"})
    return Case(system, [0.3], [0.2], jnp.array([6.0]), events=(event,), without_effect=unused)


PART_CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        efforts, elastic_transmission, elastic_support, sampled, cascade, sampled_cascade,
        constant_inputs, path_of_inputs, law_of_inputs, table_of_inputs, stored_feedforward,
        measured_feedforward, state_feedback, control_laws, elastic_joint_control, flexible_link, stops,
        temperature_event,
    )
}  # fmt: skip
