"""Linear-quadratic control about a point and along a motion, in tangent coordinates `x = (q (-) q_d, v - v_d)`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Float
from jaxdyn.control._reference import Plan, as_float, has_vector_coordinates
from jaxdyn.control._riccati import Riccati, continuous_riccati, riccati_along
from jaxdyn.dynamics import forward_dynamics_derivatives, passive_forces
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model import Model


def linearise(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    tau: Float[Array, " nv"],
    *,
    inputs: Float[Array, "nv m"] | None = None,
    passive: bool = True,
) -> tuple[Float[Array, "n n"], Float[Array, "n m"]]:
    """`xdot = A x + B u` of a robot near a state under efforts tau, `x = (dq, dv)` in the tangent space, `n = 2 nv`.

    The lower rows come from `forward_dynamics_derivatives`, and from the passive forces of the joints if `passive`. The
    columns of `inputs` say what the m inputs drive, by default every coordinate.
    """
    acting = passive_forces(model, q, v) if passive else jnp.zeros_like(v)
    d = forward_dynamics_derivatives(model, q, v, tau + acting)
    dq, dv = d.dq, d.dv
    zero = jnp.zeros_like(v)
    if passive:
        by_q, by_v = jax.jacfwd(lambda x, y: passive_forces(model, integrate(model, q, x), y), (0, 1))(zero, v)
        dq, dv = dq + d.dtau @ by_q, dv + d.dtau @ by_v
    eye = jnp.eye(model.nv, dtype=v.dtype)
    turn = jnp.zeros_like(eye) if has_vector_coordinates(model) else _turning(model, q, v)
    b = d.dtau if inputs is None else d.dtau @ inputs
    a = jnp.block([[turn, eye], [dq, dv]])
    return a, jnp.concatenate([jnp.zeros_like(b), b])


def _turning(model: Model, q, v):
    """d/dx of the rate of `x = q (-) q_d` at equal velocities: `-ad(v)` where coordinates are a group's."""

    def rate(x):
        moved = lambda s: difference(model, integrate(model, q, s * v), integrate(model, integrate(model, q, x), s * v))
        return jax.jvp(moved, (jnp.zeros((), v.dtype),), (jnp.ones((), v.dtype),))[1]

    return jax.jacfwd(rate)(jnp.zeros_like(v))


class LinearFeedback(eqx.Module):
    """`tau = tau_0 - inputs K x` with `x = (q (-) q_0, v - v_0)` about one state."""

    model: Model
    q: Float[Array, " nq"] = eqx.field(converter=as_float)
    v: Float[Array, " nv"] = eqx.field(converter=as_float)
    effort: Float[Array, " nv"] = eqx.field(converter=as_float)
    #: K, one row an input
    gain: Float[Array, "m n"] = eqx.field(converter=as_float)
    inputs: Float[Array, "nv m"] = eqx.field(converter=as_float)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        x = jnp.concatenate([difference(self.model, self.q, q), v - self.v])
        return self.effort - self.inputs @ (self.gain @ x)


class TrackingFeedback(eqx.Module):
    """`tau = u*(t) - inputs K(t) x` with `x = (q (-) q_d(t), v - v_d(t))` along a plan.

    Gains are linear between the rows of the plan.
    """

    model: Model
    plan: Plan
    gain: Float[Array, "rows m n"] = eqx.field(converter=as_float)
    inputs: Float[Array, "nv m"] = eqx.field(converter=as_float)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        want = self.plan.motion(self.model, t)
        k, _, s = self.plan.place(t)
        gain = (1 - s) * self.gain[k] + s * self.gain[k + 1]
        x = jnp.concatenate([difference(self.model, want.q, q), v - want.v])
        return self.plan.effort_at(t) - self.inputs @ (gain @ x)


class Lqr(eqx.Module):
    """Result of `lqr`."""

    law: LinearFeedback
    #: the equation solved: cost-to-go, gain, residual and status
    riccati: Riccati


def _inputs(model: Model, inputs, dtype):
    return jnp.eye(model.nv, dtype=dtype) if inputs is None else jnp.asarray(inputs, dtype)


def lqr(
    model: Model,
    q: Float[Array, " nq"],
    effort: Float[Array, " nv"],
    state_cost: Float[Array, "n n"],
    input_cost: Float[Array, "m m"],
    *,
    inputs: Float[Array, "nv m"] | None = None,
    passive: bool = True,
) -> Lqr:
    """The feedback about an equilibrium that makes `integral of x^T Q x + u^T R u` least for the linearised robot.

    `effort` `(nv,)` holds the robot at q (for instance `gravity_forces`). `inputs` `(nv, m)` says what the inputs
    drive; an acrobot has one. The law is a controller for `simulate`; everything is differentiable in every number.
    """
    v = jnp.zeros(model.nv, jnp.result_type(q, model.dtype))
    drive = _inputs(model, inputs, v.dtype)
    a, b = linearise(model, q, v, effort, inputs=drive, passive=passive)
    solved = continuous_riccati(a, b, state_cost, input_cost)
    return Lqr(LinearFeedback(model, q, v, effort, solved.gain, drive), solved)


def tracking_lqr(
    model: Model,
    plan: Plan,
    state_cost: Float[Array, "n n"],
    input_cost: Float[Array, "m m"],
    final_cost: Any = None,
    *,
    inputs: Float[Array, "nv m"] | None = None,
    passive: bool = True,
) -> TrackingFeedback:
    """The feedback along a plan that makes `integral of x^T Q x + u^T R u, plus x^T Q_f x at the end` least.

    The robot is linearised at the rows of the plan, and the Riccati equation is solved backward through them
    (`riccati_along`). The final cost is Q unless given. Tedrake, "Underactuated Robotics", chapter 10.
    """
    drive = _inputs(model, inputs, plan.v.dtype)
    final = state_cost if final_cost is None else final_cost
    at = lambda q, v, tau: linearise(model, q, v, tau, inputs=drive, passive=passive)
    a, b = jax.vmap(at)(plan.q, plan.v, plan.effort)
    _, gains = riccati_along(plan.times, a, b, state_cost, input_cost, final)
    return TrackingFeedback(model, plan, gains, drive)
