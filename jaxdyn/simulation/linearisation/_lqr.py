"""Linear-quadratic regulators of driven systems."""

import equinox as eqx
import jax.numpy as jnp

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.control import Riccati, continuous_riccati
from jaxdyn.dynamics import AbstractController, Command
from jaxdyn.kinematics import difference
from jaxdyn.simulation.linearisation._linearise import linearise_system
from jaxdyn.simulation.system import PartLayout, State, System, has_free_inputs, part_layout


class StateFeedback(AbstractController):
    """Linear feedback of the whole state: `u = u_0 - K x`, with x as in `linearise_system`."""

    layout: PartLayout
    #: the operating point
    state: State
    #: u_0
    inputs: Float[Array, " m"]
    #: K
    gain: Float[Array, "m n"]

    def initial(self, model, q, v):
        return None

    def command(self, model, t, state, memory):
        flatten = lambda s: self.layout.flatten(s.parts, s.v.dtype)
        deviation = (
            difference(model, self.state.q, state.q),
            state.v - self.state.v,
            flatten(state) - flatten(self.state),
        )
        return Command(self.inputs - self.gain @ jnp.concatenate(deviation))


class SystemLqr(eqx.Module):
    """Result of `system_lqr`."""

    #: the controller, for `simulate(..., inputs=)`
    controller: StateFeedback
    #: solution of the Riccati equation: cost-to-go, gain, residual and status
    riccati: Riccati


def system_lqr(
    system: System,
    state: State,
    inputs: Float[Array, " m"],
    state_cost: Float[Array, "n n"],
    input_cost: Float[Array, "m m"],
) -> SystemLqr:
    """Linear-quadratic regulator of a driven system about an equilibrium: minimises `integral of x^T Q x + u^T R u`.

    Arguments:

    * `system`: a system with actuators that take inputs, in continuous time and without a controller.
    * `state`, `inputs`: the equilibrium, with the states of the parts, such as currents, and the inputs `(m,)`.
    * `state_cost`: Q, `(n, n)`, positive semidefinite, for `x = (q (-) q_0, v - v_0, deviations of the parts)`.
    * `input_cost`: R, `(m, m)`, positive definite.

    Returns a `SystemLqr` with the controller, which measures the states of all parts, and the solution of the Riccati
    equation; check `riccati.status`. `jaxdyn.control.lqr` is the regulator for efforts. Raises `ModelError` for a
    system without free inputs and for sampled parts.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.control import RiccatiStatus
    from jaxdyn.simulation import State, system_lqr

    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.05, resistance=1.0, inductance=1e-3, gear=20.0)
    upright = State(jnp.array([jnp.pi]), jnp.zeros(1))
    result = system_lqr(jd.System(pendulum, (motor,)), upright, jnp.zeros(1), jnp.eye(3), jnp.eye(1))
    assert result.riccati.status == RiccatiStatus.SOLVED
    ```
    """
    layout = part_layout(system, "system_lqr")
    if not has_free_inputs(system):
        raise ModelError(
            "system_lqr needs a system whose actuators have inputs and no controller; for a robot that is driven by "
            "efforts use jaxdyn.control.lqr, and leave Inputs(...) out of the parts"
        )
    whole = system.initial(state.q, state.v, parts=state.parts)
    a, b = linearise_system(system, whole, inputs)
    shapes = (("state_cost", state_cost, a.shape), ("input_cost", input_cost, (b.shape[1],) * 2))
    q, r = (check_shape(name, jnp.asarray(x, a.dtype), shape) for name, x, shape in shapes)
    solution = continuous_riccati(a, b, q, r)
    return SystemLqr(StateFeedback(layout, whole, jnp.asarray(inputs, a.dtype), solution.gain), solution)
