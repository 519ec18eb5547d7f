"""Parts of equal structure are evaluated together, with the results of the single parts."""

from collections import Counter
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core

import jaxdyn as jd
from jaxdyn.actuators import AbstractJointActuator, DcMotor, LinearEffort, ThermalModel
from jaxdyn.dynamics import AbstractActuator, AbstractPart, Action, passive_forces
from jaxdyn.simulation import Effort, Feedback, State, Wrench

PANDA = jd.robots.panda()
JOINTS = tuple(name for name in PANDA.joint_names if PANDA.joint(name).joint.nv == 1)
Q, V, A = (jnp.asarray(x) for x in np.random.default_rng(3).normal(size=(3, PANDA.nv)))
U = jnp.linspace(-8.0, 9.0, 5)
WEAK = {"efficiency": 0.8, "reverse_efficiency": 0.6}


class Twist(AbstractActuator):
    """A torque source behind a nonlinear transmission, on a coordinate whose index is a number or structure."""

    gain: jax.Array
    index: jax.Array | None
    place: int = eqx.field(static=True, default=0)
    num_inputs: int = eqx.field(static=True, default=1)
    uses_acceleration: bool = eqx.field(static=True, default=False)

    def initial(self, model, q, v):
        return jnp.zeros(2, v.dtype)

    def mount(self, model):
        armature = lambda m: m.properties.armature
        return eqx.tree_at(armature, model, armature(model).at[self._place].add(self.gain))

    def act(self, model, t, q, v, a, state, inputs):
        effort = self.gain * jnp.tan(inputs[0] / 100 + state[0])
        return Action(jnp.zeros_like(v).at[self._place].set(effort), rate=jnp.stack([effort, v[self._place]]))

    @property
    def _place(self):
        return self.place if self.index is None else self.index


class Tug(AbstractPart):
    """A wrench on the last link, and a state."""

    force: jax.Array

    def initial(self, model, q, v):
        return {"work": jnp.zeros((), v.dtype)}

    def act(self, model, t, q, v, state):
        wrench = jnp.zeros((model.num_links, 6), v.dtype).at[-1, 5].set(jnp.tan(self.force))
        return Action(external=wrench, rate={"work": self.force * v[0]})


class Bump(AbstractJointActuator):
    """A user's actuator of one joint, without inertia and without state."""

    joint: str = eqx.field(static=True)
    height: jax.Array
    num_inputs: int = eqx.field(static=True, default=1)
    uses_acceleration: bool = eqx.field(static=True, default=False)

    @property
    def joint_inertia(self):
        return None

    def initial(self, model, q, v):
        return None

    def act_on_joint(self, t, q, v, motion, state, inputs):
        return inputs[0] + self.height * jnp.tan(motion.q / 10), None

    def canonical_form(self, q, v, state) -> Any: ...

    def requirement(self, motion, rate, state) -> Any: ...

    def power_flow(self, model, t, q, v, a, state, inputs, input_rates=None) -> Any: ...

    def holds(self, v):
        return jnp.zeros((), bool)


def law(t, q, v):
    return 3.0 - v[1] + q[0]


def damping(t, q, v):
    return -v


def motor(k, joint, **options: Any):
    numbers = {"constant": 0.05, "resistance": 0.8, "gear": 30.0 + 10 * k, "rotor_inertia": 2e-5, "viscous": 1e-5}
    return DcMotor(joint, **{key: x * (1 + 0.1 * k) for key, x in numbers.items()}, **options)


def heated(k, joint):
    return motor(k, joint, inductance=1e-3, thermal=ThermalModel(20.0 + k, 1.5, 200.0, 3.0))


#: sets of parts, most of which form groups
SETS = {
    "heated motors, out of order": [heated(k, JOINTS[j]) for k, j in enumerate((4, 0, 2))],
    "two motors on one joint": [heated(k, JOINTS[3]) for k in range(2)],
    "gear losses": [motor(k, JOINTS[k], **WEAK) for k in range(4)],
    "own voltages": [motor(k, JOINTS[k], voltage=law) for k in range(3)],
    "mixed": [heated(0, JOINTS[0]), motor(1, JOINTS[1]), heated(2, JOINTS[5]), motor(3, JOINTS[2])],
    "others": [
        Twist(jnp.array(2.0), jnp.array(1)),
        Tug(jnp.array(0.3)),
        Twist(jnp.array(1.5), jnp.array(4)),
        Feedback(damping),
        Tug(jnp.array(-0.7)),
        Feedback(damping),
        Effort(jnp.arange(float(PANDA.nv))),
        Effort(jnp.ones(PANDA.nv)),
        Wrench(PANDA.link_names[-1], [0, 0, 0, 1.0, 0, 0]),
    ],
    "users' and linear": [Bump(JOINTS[1], jnp.array(3.0)), Bump(JOINTS[4], jnp.array(2.0))]
    + [LinearEffort(JOINTS[k], [1.0, -k, 2.0], 0.5, [[0.0, 1.0, -3.0]], [0.0], [2.0]) for k in (6, 2)],
}


def moved(system):
    """A state in which all states of parts differ from each other."""
    states = system.initial(Q, V).parts
    leaves, tree = jax.tree.flatten(states)
    moved = [x + 0.1 * (k + 1) + 0.05 * np.arange(x.size).reshape(x.shape) for k, x in enumerate(leaves)]
    return State(Q, V, jax.tree.unflatten(tree, moved))


@jax.jit
def together(system, state, inputs):
    action = system.action(0.2, state, inputs=inputs, acceleration=A)
    return action, system.mounted_model.properties.armature


@jax.jit
def alone(system, state, inputs):
    """The sum of the actions of the parts, one after the other."""
    model, effort, external, rates, used = system.model, passive_forces(system.model, Q, V), None, [], 0
    for part in system.parts:
        model = part.mount(model) if isinstance(part, AbstractActuator) else model
    for part, x in zip(system.parts, state.parts, strict=True):
        if isinstance(part, AbstractActuator):
            action = part.act(model, 0.2, Q, V, A, x, inputs[used : used + part.num_inputs])
            used += part.num_inputs
        else:
            action = part.act(model, 0.2, Q, V, x)
        effort = effort if action.effort is None else effort + action.effort
        if action.external is not None:
            external = action.external if external is None else external + action.external
        rates.append(action.rate)
    return Action(effort, external, tuple(rates)), model.properties.armature


@pytest.mark.parametrize("parts", SETS.values(), ids=SETS)
def test_groups_act_as_their_parts(parts):
    """Efforts, wrenches, inertias, and the rate of each part in its place."""
    system = jd.System(PANDA, tuple(parts))
    state, inputs = moved(system), U[: system.num_inputs]
    found, wanted = together(system, state, inputs), alone(system, state, inputs)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-12)


def count_primitives(parts):
    """Number of occurrences of each primitive in the program of a vector field."""
    system = jd.System(PANDA, tuple(parts))
    state = jax.eval_shape(lambda: system.initial(Q, V))
    program = jax.make_jaxpr(lambda s, u: system.rate(0.0, s, u))(state, jnp.zeros(system.num_inputs))
    return _count(program.jaxpr)


def _count(jaxpr) -> Counter:
    found = Counter()
    for equation in jaxpr.eqns:
        found[equation.primitive.name] += 1
        for x in equation.params.values():
            for inner in x if isinstance(x, tuple | list) else (x,):
                inner = inner.jaxpr if isinstance(inner, core.ClosedJaxpr) else inner
                if isinstance(inner, core.Jaxpr):
                    found += _count(inner)
    return found


def test_the_program_has_one_copy_of_the_equations_of_a_group():
    """Seven parts with a tangent have one tangent, unless their structure differs."""
    kinds = {
        1: [Twist(jnp.array(1.0 + k), jnp.array(k)) for k in range(7)],
        7: [Twist(jnp.array(1.0 + k), None, k) for k in range(7)],
    }
    for copies, parts in kinds.items():
        assert count_primitives(parts)["tan"] == copies
    assert count_primitives([Bump(name, jnp.array(1.0)) for name in JOINTS[:4]])["tan"] == 1
    size = lambda n: sum(count_primitives([heated(k, name) for k, name in enumerate(JOINTS[:n])]).values())
    two, seven = size(2), size(7)
    assert seven - two < 5 * 45  # moving the numbers of five more motors: 21 leaves, 3 states and 3 rates each


@pytest.mark.slow
def test_derivatives_of_a_group_belong_to_each_part():
    """The derivatives with respect to each motor's numbers equal those of a system of ungrouped motors."""

    class Other(DcMotor):
        """The same motor as another class, which forms no group with it."""

    def accelerations(kinds, numbers):
        parts = []
        for k, (kind, (constant, gear)) in enumerate(zip(kinds, numbers, strict=True)):
            options = {"resistance": 0.8, "rotor_inertia": 2e-5, **WEAK}
            parts.append(kind(arm.joint_names[k], constant=constant, gear=gear, **options))
        system = jd.System(arm, tuple(parts))
        return system.rate(0.0, system.initial(Q[:2], V[:2]), jnp.array([5.0, -7.0])).v

    arm = jd.robots.double_pendulum()
    numbers = jnp.array([[0.05, 30.0], [0.06, 40.0]])
    together = jax.jit(jax.jacrev(lambda n: accelerations((DcMotor, DcMotor), n)))(numbers)
    alone = jax.jit(jax.jacfwd(lambda n: accelerations((DcMotor, Other), n)))(numbers)
    assert np.abs(alone).max(0).min() > 1e-3
    np.testing.assert_allclose(together, alone, rtol=1e-11, atol=1e-12)
