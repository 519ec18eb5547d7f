"""The dynamics of a robot and its parts: states, controls, and their limits."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.joints import has_vector_rate
from jaxdyn.model import Model
from jaxdyn.simulation import State, System, coordinate_names, velocity_names
from jaxdyn.simulation.system import (
    PartLayout,
    as_system,
    has_free_inputs,
    input_limits,
    input_names,
    part_layout,
    part_limits,
)
from jaxdyn.trajopt.problem._dynamics import AbstractImplicit, AbstractLimitedDynamics, DynamicsLimits


class Robot(AbstractLimitedDynamics, AbstractImplicit):
    """The dynamics of a robot and its parts, with state `x = (q, v, states of the parts)`.

    The controls are the inputs of the actuators, such as voltages, if the system has any, and joint efforts otherwise:

        M(q) vdot + h(q, v) = inputs u + passive efforts + efforts of the parts of the system,   qdot = v

    These are the equations of `simulate`, for joints whose coordinates form a vector and parts in continuous time.

    ```python
    import jax.numpy as jnp

    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.trajopt import Robot

    acrobot = jd.robots.acrobot()
    robot = Robot(acrobot, actuated=("elbow",))
    assert robot.state_names == ("q.shoulder", "q.elbow", "v.shoulder", "v.elbow")
    assert robot.rate(0.0, jnp.zeros(4), jnp.ones(1)).shape == (4,)

    motor = DcMotor("elbow", constant=0.05, resistance=1.0, inductance=1e-3, gear=20.0)
    driven = Robot(jd.System(acrobot, (motor,)))
    assert driven.state_names[4:] == ("current.elbow",) and driven.control_names == ("voltage.elbow",)
    ```
    """

    system: System
    #: map from efforts to generalised forces, `(nv, nu)`; None where the controls are inputs of actuators
    inputs: Float[Array, "*batch nv nu"] | None
    layout: PartLayout
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, system: Model | System, actuated: tuple[str, ...] | None = None):
        """Arguments:

        * `system`: a model or a `System`.
        * `actuated`: names of the joints whose efforts are the controls; by default the joints with actuators in the
          model, or all joints without any. Not for a system whose actuators have inputs.

        Raises `ModelError` for joints with quaternions, for sampled parts, and for `actuated` where inputs of actuators
        are the controls.
        """
        self.system = as_system(system)
        model = self.system.model
        check_coordinates(model)
        self.layout = part_layout(self.system, "the dynamics of a Robot")
        self.state_names = (*state_names(model), *self.layout.names)
        if has_free_inputs(self.system):
            if actuated is not None:
                raise ModelError(
                    f"actuated={actuated!r} names joints whose efforts are controls, but the controls of this system "
                    f"are the inputs {list(input_names(self.system))} of its actuators; leave `actuated` out"
                )
            self.inputs, self.control_names = None, input_names(self.system)
            return
        columns = actuated_columns(model, actuated)
        names = [name for name, _ in velocity_names(model)]
        self.inputs = jnp.asarray(np.eye(model.nv)[:, columns], model.dtype)
        self.control_names = tuple(names[k] for k in columns)

    @property
    def model(self) -> Model:
        """The robot."""
        return self.system.model

    def to_state(self, x: Float[Array, " nx"]) -> State:
        """The state of the system that the vector x represents, as `simulate` takes it."""
        nq, nv = self.model.nq, self.model.nv
        return State(x[:nq], x[nq : nq + nv], self.layout.unflatten(x[nq + nv :]))

    def to_vector(self, state: State) -> Float[Array, " nx"]:
        """The vector `x = (q, v, states of the parts)`; parts without a given state are in their initial states."""
        whole = self.system.initial(state.q, state.v, parts=state.parts)
        return self._join(whole.q, whole.v, whole.parts)

    def rate(self, t, x, u):
        state = self.to_state(x)
        action, a = self.system.accelerate(t, state, **self._commands(u))
        return self._join(state.v, a, action.rate)

    def unknowns(self, t, x, u):
        return self.system.accelerate(t, self.to_state(x), **self._commands(u))[1]

    @property
    def has_cheap_residual(self) -> bool:
        return self.system.motion.has_affine_residual

    @property
    def is_affine(self) -> bool:
        # inputs of actuators may act nonlinearly: they saturate, and heat grows with the square of a current
        return self.system.motion.has_affine_residual and not self.system.uses_acceleration and self.inputs is not None

    def implicit(self, t, x, u, y):
        state = self.to_state(x)
        action = self.system.action(t, state, acceleration=y, **self._commands(u))
        model, motion = self.system.mounted_model, self.system.motion
        residual = motion.residual(model, t, state.q, state.v, y, action.effort, action.external)
        return self._join(state.v, y, action.rate), residual

    def limits(self):
        """DynamicsLimits of the joints and of the actuators."""
        joints = self.model.limits
        lower, upper = part_limits(self.system, self.layout)
        if self.inputs is None:
            low, high = input_limits(self.system)
        else:
            high = effort_limits(self.model, self.inputs)
            low = -high
        return DynamicsLimits(
            jnp.concatenate([joints.lower, -joints.velocity, lower]),
            jnp.concatenate([joints.upper, joints.velocity, upper]),
            low,
            high,
        )

    def _commands(self, u):
        return {"inputs": u} if self.inputs is None else {"effort": self.inputs @ u}

    def _join(self, q, v, parts):
        return jnp.concatenate([q, v, self.layout.flatten(parts, v.dtype)])


def state_names(model: Model) -> tuple[str, ...]:
    """Names of positions and velocities."""
    return tuple(f"q.{n}" for n, _ in coordinate_names(model)) + tuple(f"v.{n}" for n, _ in velocity_names(model))


def actuated_columns(model: Model, actuated: tuple[str, ...] | None) -> list[int]:
    """Velocity coordinates of the joints `actuated`; by default of the joints with actuators, or of all joints."""
    if actuated is None:
        actuated = tuple(dict.fromkeys(a.joint for a in model.actuators))
        if not actuated:
            return list(range(model.nv))
    return [k for name in actuated for k in range(*model.joint(name).v.indices(model.nv))]


def effort_limits(model: Model, inputs: Float[Array, "nv nu"]) -> Float[Array, " nu"]:
    """The largest efforts of the joints that controls act on."""
    return jnp.where(inputs != 0, model.limits.effort[:, None], jnp.inf).min(0)


def check_coordinates(model: Model):
    """Raises `ModelError` for joints whose coordinates do not form a vector."""
    views = [model.joint(n) for n in model.joint_names]
    names = [v.name for v in views if not has_vector_rate(v.joint)]
    if names:
        raise ModelError(
            f"joints {names} have coordinates that do not form a vector, but a trajectory needs vectors; replace "
            "Spherical, Free and Planar by joints with angles, such as SphericalZYX and Prismatic"
        )
