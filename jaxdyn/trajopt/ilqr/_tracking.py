"""Feedback along solutions of iterative LQR: of efforts, or of the inputs of actuators."""

import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.control import Plan, TrackingFeedback
from jaxdyn.dynamics import AbstractController, Command
from jaxdyn.model import Model
from jaxdyn.trajopt.problem import Robot, Solution


class TrackingInputs(AbstractController):
    """Inputs of actuators along a solution, `u_k - gain(t) (x - x(t))`, with x the state of the whole driven robot.

    Controls are held over intervals; gains and states are interpolated linearly, and constant outside of the horizon.
    """

    robot: Robot
    #: s
    times: Float[Array, " nodes"]
    x: Float[Array, "nodes nx"]
    u: Float[Array, "nodes nu"]
    gain: Float[Array, "nodes nu nx"]

    def initial(self, model, q, v):
        return None

    def command(self, model, t, state, memory):
        t = jnp.clip(jnp.asarray(t, self.times.dtype), self.times[0], self.times[-1])
        k = jnp.clip(jnp.searchsorted(self.times, t, side="right") - 1, 0, self.times.shape[0] - 2)
        s = (t - self.times[k]) / (self.times[k + 1] - self.times[k])
        between = lambda y: (1 - s) * y[k] + s * y[k + 1]
        x = jnp.concatenate([state.q, state.v, self.robot.layout.flatten(state.parts, state.v.dtype)])
        return Command(self.u[k] - between(self.gain) @ (x - between(self.x)))


def tracking_law(model: Model, solution: Solution) -> TrackingFeedback | TrackingInputs:
    """Controller `u_k + feedback_k (x - x_k(t))` for `simulate`, from a solution of `ilqr` for a robot.

    Controls are held over intervals; gains and states are interpolated. If the controls are the inputs of actuators,
    such as voltages, the law is a controller of the whole state, currents included, for `simulate(..., inputs=law)` or
    `SampledInputs`; otherwise a law `(t, q, v)` of efforts.
    """
    d = solution.problem.dynamics
    inputs = getattr(d, "inputs", None)
    if solution.problem.bounds.control_rate is not None:
        raise ModelError("tracking_law needs gains of the controls; with limited control rates there are none")
    if isinstance(d, Robot) and inputs is None:
        gain = -solution.details.feedback[:, :, : d.nx]  # without the column of a free horizon
        return TrackingInputs(d, solution.t, solution.x, solution.u, jnp.concatenate([gain, gain[-1:]]))
    if d.nx != model.nq + model.nv:
        raise ModelError(
            f"tracking_law returns efforts for (q, v), but the states of this solution are {list(d.state_names)} and "
            f"its controls {list(d.control_names)}"
        )
    if inputs is None:
        raise ModelError(f"tracking_law needs a solution for a Robot, not {type(solution.problem.dynamics).__name__}")
    q, v = solution.x[:, : model.nq], solution.x[:, model.nq :]
    plan = Plan(solution.t, q, v, solution.u @ inputs.T, hold=True)
    gain = -solution.details.feedback[:, :, : solution.x.shape[1]]  # without the column of a free horizon
    return TrackingFeedback(model, plan, jnp.concatenate([gain, gain[-1:]]), inputs)
