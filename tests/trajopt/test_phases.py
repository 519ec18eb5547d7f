"""Multi-phase problems: closed forms, a limit cycle, a hop that the contact engine repeats, and messages."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import jaxdyn as jd
from jaxdyn._errors import ArgumentError, ModelError, ShapeError
from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
from jaxdyn.joints import Prismatic
from jaxdyn.simulation import Feedback, SimulationStatus
from jaxdyn.spatial import point_mass
from jaxdyn.trajopt import (
    Bounds,
    ContactRobot,
    Guess,
    HermiteSimpson,
    MultipleShooting,
    PathConstraint,
    Problem,
    Robot,
    Solution,
    SolveStatus,
    Transition,
    VectorField,
    ilqr,
    lift_off,
    multi_phase,
    partial,
    phase_trajectories,
    solve,
    touch_down,
)

from ..simulation.orbits._walkers import Walker, relative
from .problems import push

G = 10.0


def _fly(t, x, u, gravity):
    return jnp.stack([x[1], u[0] - gravity])


def _effort(t, x, u):
    return u @ u


def _late(t, x):
    return 5.0 * t


def _speed(t, x, u):
    return x[1]


class Bounce(eqx.Module):
    """A bounce with a coefficient of restitution."""

    e: Any

    def __call__(self, x):
        return jnp.stack([x[0], -self.e * x[1]])


BALL = VectorField(_fly, ("height", "velocity"), ("thrust",), jnp.asarray(G))
GROUND = partial([0.0], [0])


def bouncing(e=0.5, **options) -> Problem:
    """A fall of 0.4 s from 1 m, a hop of free duration that costs time, and a rise of 0.3 s to rest at 0.5 m."""
    impact = Transition(Bounce(jnp.asarray(e)))
    fall = Problem(BALL, 0.4, start=jnp.array([1.0, 0.0]), end=GROUND, running=_effort)
    # the guess of the hop rises and falls
    guess = Guess(jnp.array([0.0, 1.0]), jnp.array([[0.0, 2.0], [0.0, -2.0]]), jnp.zeros((2, 1)))
    hop = Problem(BALL, 0.5, end=GROUND, running=_effort, final=_late, free_duration=True, guess=guess)
    rise = Problem(BALL, 0.3, end=jnp.array([0.5, 0.0]), running=_effort, **options)
    return multi_phase([fall, hop, rise], [impact, impact])


def _least_effort(T, x0, v0, x1, v1):
    """The least integral of u^2 of `xddot = u - G` between two states, whose optimal u is linear in time."""
    d, v1 = x1 - x0 + G * T**2 / 2, v1 + G * T
    return 4 / T * (v0**2 + v0 * v1 + v1**2) - 12 / T**2 * d * (v0 + v1) + 12 * d**2 / T**3


def _bouncing_optimum(e):
    """Speeds before both impacts, duration of the hop, and cost, by minimising closed forms."""

    def cost(y):
        v1, v2, T = y
        first, last = _least_effort(0.4, 1, 0, 0, v1), _least_effort(0.3, 0, -e * v2, 0.5, 0)
        return first + _least_effort(T, 0, -e * v1, 0, v2) + 5 * (0.4 + T) + last

    found = scipy.optimize.minimize(cost, [-4.0, -4.0, 0.5], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 0})
    return found.x, found.fun


# Default tier: the structure of the problem


def test_structure_of_a_multi_phase_problem():
    problem = bouncing(bounds=Bounds(lower_control=-3.0))
    d: Any = problem.dynamics
    assert problem.nx == 3 * 2 + 2 and problem.nu == 3  # a free duration, and the cost at the end of the hop
    assert d.state_names[-2:] == ("duration of phase 1", "cost of phase 1")
    assert problem.start.fixed == (True, True, True, False, False, False, False, False)
    assert problem.end.fixed == (True, False, False, False, True, True, False, False)
    np.testing.assert_allclose(problem.bounds.lower_control, [-np.inf, -np.inf, -3.0])
    x, u = jnp.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.8, 0.0]), jnp.array([1.0, 2.0, 3.0])
    # the hop runs backward, over a free duration of 0.8 s
    expected = [0.4 * 2, 0.4 * -9, -0.8 * 4, -0.8 * -8, 0.3 * 6, 0.3 * -7, 0, 0]
    np.testing.assert_allclose(d.rate(0.25, x, u), expected, rtol=1e-12)
    times = [p.t for p in d.stack.points(0.25, x, u)]
    np.testing.assert_allclose(times, [0.1, 0.4 + 0.75 * 0.8, 1.2 + 0.25 * 0.3], rtol=1e-12)
    np.testing.assert_allclose(problem.end_condition(1.0, x, u), [3 + 0 - 1, 4 + 0.5 * 2], rtol=1e-12)
    np.testing.assert_allclose(problem.start_condition(0.0, x, u), [0 - 5 * 1.2, 5 - 3, 6 + 0.5 * 4], rtol=1e-12)


def test_periodic_sequences_return_to_the_first_phase():
    phase, impact = Problem(BALL, 1.0), Transition(Bounce(jnp.asarray(0.5)))
    two = multi_phase([phase, phase], [impact, Transition()])
    x, u = jnp.array([1.0, 2.0, 3.0, 5.0]), jnp.zeros(2)
    assert two.coupling is None  # the first phase runs backward: both transitions are at one end of the horizon
    np.testing.assert_allclose(two.start_condition(0.0, x, u), [3 - 1, 5 + 0.5 * 2])
    np.testing.assert_allclose(two.end_condition(1.0, x, u), [1 - 3, 2 - 5])
    one = multi_phase([phase], [impact])
    np.testing.assert_allclose(one.coupling(x[:2], x[2:]), [1 - 3, 2 + 0.5 * 5])


@pytest.mark.parametrize(
    ("transitions", "options", "kind", "message"),
    [
        ([], {}, ModelError, "2 phases are joined by 0 transitions; give 1, or 2 for a periodic motion"),
        ([Transition(lambda x: x[:1])], {}, ShapeError, r"leads to a state of shape \(1,\)"),
        ([Transition()], {"bounds": Bounds(control_rate=1.0)}, ModelError, "phase 0 has a free duration and bounds of"),
    ],
)
def test_wrong_sequences_are_refused(transitions, options, kind, message):
    phase = Problem(BALL, 1.0, free_duration=True, **options)
    with pytest.raises(kind, match=message):
        multi_phase([phase, phase], transitions)


def test_transitions_are_no_functions(without_annotations):
    phase = Problem(BALL, 1.0)
    with pytest.raises(ArgumentError, match="make it with jaxdyn.trajopt.Transition"):
        multi_phase([phase, phase], [lambda x: x])


def test_conditions_of_state_and_controls_need_controls_at_nodes():
    problem = push(end_condition=_speed)
    with pytest.raises(ModelError, match="piecewise constant controls have no values at the ends"):
        solve(problem, transcription=MultipleShooting(), intervals=2)
    with pytest.raises(ModelError, match="condition of state and controls"):
        ilqr(problem, intervals=2)


def test_other_solutions_have_no_phases():
    zero, count = jnp.zeros(()), jnp.zeros((), int)
    rows = jnp.zeros(3), jnp.zeros((3, 2)), jnp.zeros((3, 1))
    other = Solution(*rows, zero, zero, count, count, zero, zero, push())
    with pytest.raises(ModelError, match="expected the solution of a problem from multi_phase"):
        phase_trajectories(other)


def test_phases_follow_each_other_in_time():
    """A constant speed is optimal; the second phase runs backward within the problem."""
    field = VectorField(lambda t, x, u, p: u, ("x",), ("u",))
    options = {"running": lambda t, x, u: u @ u}
    phases = [Problem(field, 1.0, start=jnp.zeros(1), **options), Problem(field, 2.0, end=jnp.array([3.0]), **options)]
    first, second = phase_trajectories(solve(multi_phase(phases, [Transition()]), intervals=2).checked())
    np.testing.assert_allclose(first.t, [0, 0.5, 1])
    np.testing.assert_allclose(second.t, [1, 2, 3])
    np.testing.assert_allclose(first.x[:, 0], first.t, atol=1e-7)
    np.testing.assert_allclose(second.x[:, 0], second.t, atol=1e-7)


# Closed forms


@pytest.mark.exhaustive
def test_three_phases_reach_the_closed_optimum():
    """Cost, speeds, free duration, and the derivative with respect to the restitution."""

    @jax.jit
    @jax.value_and_grad
    def cost(e):
        return solve(bouncing(e), intervals=3, tolerance=1e-10).cost

    plan = solve(bouncing(), intervals=3, tolerance=1e-10)
    (v1, v2, duration), least = _bouncing_optimum(0.5)
    assert plan.status == SolveStatus.SOLVED
    np.testing.assert_allclose(plan.cost, least, rtol=1e-9)
    fall, hop, rise = phase_trajectories(plan)
    np.testing.assert_allclose([fall.x[-1, 1], hop.x[-1, 1], hop.duration], [v1, v2, duration], rtol=1e-5)
    np.testing.assert_allclose(hop.x[0], [0, -0.5 * v1], atol=1e-5)
    np.testing.assert_allclose([fall.t[-1], hop.t[-1], rise.t[-1]], [0.4, 0.4 + duration, 0.7 + duration], rtol=1e-6)
    # the optimal thrust is linear in time, in the phase that ran backward too
    line = np.polyfit(hop.t, hop.u[:, 0], 1)
    ts = np.linspace(0.41, 0.5, 5)
    np.testing.assert_allclose(jax.vmap(hop.control)(ts)[:, 0], np.polyval(line, ts), atol=1e-5)
    difference = (_bouncing_optimum(0.5 + 1e-4)[1] - _bouncing_optimum(0.5 - 1e-4)[1]) / 2e-4
    value, slope = cost(0.5)
    np.testing.assert_allclose([value, slope], [least, difference], rtol=1e-6)


@pytest.mark.exhaustive
def test_path_constraints_and_their_times_belong_to_one_phase():
    """A push in two phases of different lengths, with a limit of the speed, equals the push in one phase."""
    whole = push(path=(PathConstraint("speed", _speed, upper=1.5),))
    d = whole.dynamics
    limit = (PathConstraint("speed", _speed, upper=1.5),)
    first = Problem(d, 0.4, start=jnp.zeros(2), running=_effort, path=limit)
    second = Problem(d, 0.8, end=whole.end.value, running=_effort, path=limit)
    parts = solve(multi_phase([first, second], [Transition()]), mesh=jnp.linspace(0, 1, 9)).checked()
    mesh = np.concatenate([np.linspace(0, 1 / 3, 9), np.linspace(1 / 3, 1, 9)[1:]])
    alone = solve(whole, mesh=jnp.asarray(mesh)).checked()
    # controls may jump where the phases meet
    assert (1 - 2e-3) * alone.cost < parts.cost < (1 + 1e-8) * alone.cost
    x = np.concatenate([phase.x for phase in phase_trajectories(parts)])
    assert x[:, 1].max() < 1.5 + 1e-6
    np.testing.assert_allclose(np.delete(x, 9, axis=0), alone.x, atol=2e-3)


# The passive limit cycle of a walker


class Step(eqx.Module):
    """The state after the strike of the swing foot, which becomes the stance foot."""

    walker: Walker

    def __call__(self, x):
        return jnp.concatenate(self.walker.strike.reset(self.walker.pinned, 0.0, x[:2], x[2:]))


class Height(eqx.Module):
    """Height of the swing foot above the slope."""

    walker: Walker

    def __call__(self, t, x, u):
        return jd.frame_pose(self.walker.pinned, x[:2], "swing_foot").translation @ self.walker.ground.normal


@pytest.mark.exhaustive
def test_least_effort_gait_is_the_passive_limit_cycle():
    """One phase with its impact; the reference is that of `periodic_orbit` in tests/simulation/orbits."""
    walker = Walker.build(0.5, 0.5, 5.0, 10.0, gravity=9.81, slope=jnp.deg2rad(3.0))
    ends = [
        jnp.concatenate([relative(*y), jnp.array(v)])
        for y, v in (((0.22, -0.32), (-1.1, 0.7)), ((-0.32, 0.22), (-1.4, 0.0)))
    ]
    guess = Guess(jnp.array([0.0, 1.0]), jnp.stack(ends), jnp.zeros((2, 1)))
    robot = Robot(walker.pinned, actuated=("hip",))
    gait = Problem(robot, 0.7, running=_effort, free_duration=True, guess=guess)
    plan = solve(multi_phase([gait], [Transition(Step(walker), Height(walker))]), intervals=24).checked()
    assert plan.cost < 1e-8
    (phase,) = phase_trajectories(plan)
    stance, _, rate, hip = phase.x[0]
    expected = [0.218668802939, -1.0923835898835, -0.3773739489073, 0.7343463911587]
    np.testing.assert_allclose([stance, rate, rate + hip, phase.duration], expected, atol=2e-6)  # error of the mesh


# A hop, planned and simulated


def hopper():
    """A body and a foot below it, which move vertically; the leg between them has an actuator."""
    b = jd.ModelBuilder()
    b.add_link("body", "world", Prismatic((0, 0, 1)), point_mass(2.0))
    model = b.add_link("foot", "body", Prismatic((0, 0, 1)), point_mass(0.5)).build()
    return jd.System(model, motion=ContactMotion(Contact("floor", Gap("foot", Point(), "world", Plane()))))


def _leg_effort(t, x, u):
    return 1e-2 * u[0] ** 2


def plan_hop(system, intervals):
    """A fall from 1 m, a stance and a rise to 1.1 m, each of free duration, with the leg between 0.3 and 0.9 m."""
    air, stance = (ContactRobot(system, closed, actuated=("foot_joint",)) for closed in ((), ("floor",)))
    leg = Bounds(
        lower_state=jnp.array([-jnp.inf, -0.9, -jnp.inf, -jnp.inf]),
        upper_state=jnp.array([jnp.inf, -0.3, jnp.inf, jnp.inf]),
    )

    def phase(robot, duration, states, control, **options):
        guess = Guess(jnp.array([0.0, 1.0]), jnp.array(states), jnp.tile(jnp.array(control), (2, 1)))
        path = [robot.limits_of_modes()]
        return Problem(
            robot, duration, running=_leg_effort, bounds=leg, path=path, free_duration=True, guess=guess, **options
        )

    start, down, up = [1.0, -0.6, 0, 0], [0.6, -0.6, -2.8, 0], [0.6, -0.6, 2.8, 0]
    landed, pushed, top = [0.6, -0.6, -2.8, 2.8], [0.6, -0.6, 2.8, -2.8], [1.1, -0.6, 0, 0]
    phases = [
        phase(air, 0.28, [start, down], [0.0], start=jnp.array(start)),
        phase(stance, 0.2, [landed, pushed], [-50.0, 50.0]),
        phase(air, 0.28, [up, top], [0.0], end=partial([1.1, 0.0], [0, 2])),
    ]
    problem = multi_phase(phases, [touch_down(air, ["floor"]), lift_off(stance, ["floor"])])
    return solve(problem, transcription=HermiteSimpson(), intervals=intervals)


class Replay(eqx.Module):
    """The efforts of a plan over time."""

    phases: tuple

    def __call__(self, t, q, v):
        first, second, third = self.phases
        force = jnp.where(t < third.t[0], second.control(t)[0], third.control(t)[0])
        return jnp.stack([jnp.zeros(()), jnp.where(t < second.t[0], first.control(t)[0], force)])


@pytest.mark.exhaustive
def test_simulation_repeats_a_planned_hop():
    system = hopper()
    plan = plan_hop(system, 20).checked()
    fall, stance, rise = phases = phase_trajectories(plan)
    assert abs(fall.x[-1, :2].sum()) < 1e-9  # touch-down
    np.testing.assert_allclose(stance.x[0, 2:].sum(), 0, atol=1e-9)  # plastic impact of the foot
    assert stance.u[:, 1].min() > -2e-6 and abs(stance.u[-1, 1]) < 1e-9
    ts = jnp.concatenate([fall.t[::5], stance.t[5::5], rise.t[5::5]])
    states = np.concatenate([fall.x[::5], stance.x[5::5], rise.x[5::5]])
    held = jd.System(system.model, (Feedback(Replay(phases)),), system.motion)
    run = jd.simulate(held, fall.x[0, :2], fall.x[0, 2:], ts)
    assert run.status == SimulationStatus.FINISHED and run.phases.count == 3
    np.testing.assert_allclose(run.phases.time[1:3], [stance.t[0], rise.t[0]], atol=1e-5)
    np.testing.assert_allclose(np.concatenate([run.q, run.v], axis=1)[-1], states[-1], atol=1e-4)
