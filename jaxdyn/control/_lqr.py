"""Linear-quadratic regulators about an equilibrium and along a trajectory, in tangent coordinates.

The state of the linearised robot is `x = (q (-) q_d, v - v_d)`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._numerics import as_float
from jaxdyn._types import Array, Float
from jaxdyn.control._reference import Plan, has_vector_coordinates
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
    """Linearises forward dynamics: `xdot = A x + B u` with `x = (dq, dv)` in the tangent space, `n = 2 nv`.

    Arguments: state `q`, `v` and efforts `tau` of the operating point; `inputs` `(nv, m)` maps the m inputs to efforts,
    by default the identity; `passive`, whether the passive forces of the joints act. Returns A and B. Their lower rows
    are `forward_dynamics_derivatives`.
    """
    acting = passive_forces(model, q, v) if passive else jnp.zeros_like(v)
    d = forward_dynamics_derivatives(model, q, v, tau + acting)
    dq, dv = d.dq, d.dv
    zero = jnp.zeros_like(v)
    if passive:
        by_q, by_v = jax.jacfwd(lambda x, y: passive_forces(model, integrate(model, q, x), y), (0, 1))(zero, v)
        dq, dv = dq + d.dtau @ by_q, dv + d.dtau @ by_v
    eye = jnp.eye(model.nv, dtype=v.dtype)
    transport = jnp.zeros_like(eye) if has_vector_coordinates(model) else _tangent_rate_jacobian(model, q, v)
    b = d.dtau if inputs is None else d.dtau @ inputs
    a = jnp.block([[transport, eye], [dq, dv]])
    return a, jnp.concatenate([jnp.zeros_like(b), b])


def _tangent_rate_jacobian(model: Model, q, v):
    """Derivative with respect to x of the rate of `x = q (-) q_d` at equal velocities: `-ad(v)` on a Lie group."""

    def rate(x):
        deviation = lambda s: difference(
            model, integrate(model, q, s * v), integrate(model, integrate(model, q, x), s * v)
        )
        return jax.jvp(deviation, (jnp.zeros((), v.dtype),), (jnp.ones((), v.dtype),))[1]

    return jax.jacfwd(rate)(jnp.zeros_like(v))


class LinearFeedback(eqx.Module):
    """Linear state feedback about a state: `tau = tau_0 - inputs K x`, `x = (q (-) q_0, v - v_0)`."""

    model: Model
    q: Float[Array, " nq"] = eqx.field(converter=as_float)
    v: Float[Array, " nv"] = eqx.field(converter=as_float)
    effort: Float[Array, " nv"] = eqx.field(converter=as_float)
    #: K
    gain: Float[Array, "m n"] = eqx.field(converter=as_float)
    inputs: Float[Array, "nv m"] = eqx.field(converter=as_float)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        x = jnp.concatenate([difference(self.model, self.q, q), v - self.v])
        return self.effort - self.inputs @ (self.gain @ x)


class TrackingFeedback(eqx.Module):
    """Linear state feedback along a plan: `tau = u*(t) - inputs K(t) x`, `x = (q (-) q_d(t), v - v_d(t))`.

    Gains are interpolated linearly between the rows of the plan.
    """

    model: Model
    plan: Plan
    gain: Float[Array, "rows m n"] = eqx.field(converter=as_float)
    inputs: Float[Array, "nv m"] = eqx.field(converter=as_float)

    def __call__(self, t, q, v) -> Float[Array, " nv"]:
        target = self.plan.motion(self.model, t)
        k, _, s = self.plan.place(t)
        gain = (1 - s) * self.gain[k] + s * self.gain[k + 1]
        x = jnp.concatenate([difference(self.model, target.q, q), v - target.v])
        return self.plan.effort_at(t) - self.inputs @ (gain @ x)


class Lqr(eqx.Module):
    """Result of `lqr`."""

    law: LinearFeedback
    #: solution of the Riccati equation: cost-to-go, gain, residual and status
    riccati: Riccati


def _input_matrix(model: Model, inputs, dtype):
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
    """Linear-quadratic regulator about an equilibrium: minimises `integral of x^T Q x + u^T R u`.

    Arguments:

    * `q`, `effort`: the equilibrium, `(nq,)` and `(nv,)`; the effort balances gravity, for instance `gravity_forces`.
    * `state_cost`: Q, `(n, n)` with `n = 2 nv`, positive semidefinite, for `x = (q (-) q_0, v)`.
    * `input_cost`: R, `(m, m)`, positive definite.
    * `inputs`: `(nv, m)`, the map from inputs to efforts, by default the identity; an acrobot has one column.
    * `passive`: whether the passive forces of the joints are part of the linearisation.

    Returns an `Lqr` with the control law and the solution of the Riccati equation; check `riccati.status`. The result
    is differentiable with respect to all arguments.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.control import RiccatiStatus, lqr

    model = jd.robots.pendulum()
    result = lqr(model, jnp.array([jnp.pi]), jnp.zeros(1), jnp.eye(2), jnp.eye(1))  # upright
    assert result.riccati.status == RiccatiStatus.SOLVED
    tau = result.law(0.0, jnp.array([3.0]), jnp.zeros(1))  # N m
    ```
    """
    v = jnp.zeros(model.nv, jnp.result_type(q, model.dtype))
    input_matrix = _input_matrix(model, inputs, v.dtype)
    a, b = linearise(model, q, v, effort, inputs=input_matrix, passive=passive)
    solution = continuous_riccati(a, b, state_cost, input_cost)
    return Lqr(LinearFeedback(model, q, v, effort, solution.gain, input_matrix), solution)


def tracking_lqr(
    model: Model,
    plan: Plan,
    state_cost: Float[Array, "n n"],
    input_cost: Float[Array, "m m"],
    final_cost: Float[Array, "n n"] | None = None,
    *,
    inputs: Float[Array, "nv m"] | None = None,
    passive: bool = True,
) -> TrackingFeedback:
    """Time-varying linear-quadratic regulator along a plan: minimises `integral of x^T Q x + u^T R u`.

    A final cost `x^T Q_f x` is added. Arguments:

    * `plan`: the trajectory with its nominal efforts, such as `nominal_plan` or a solution of `jaxdyn.trajopt`.
    * `state_cost`, `input_cost`: Q `(n, n)` and R `(m, m)`, as in `lqr`.
    * `final_cost`: Q_f, `(n, n)`, by default Q.
    * `inputs`, `passive`: as in `lqr`.

    Returns a `TrackingFeedback`. The robot is linearised at the rows of the plan, and the Riccati equation is
    integrated backward in time (`riccati_along`). Tedrake, "Underactuated Robotics", chapter 10.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.control import PathReference, nominal_plan, tracking_lqr

    model = jd.robots.pendulum()
    plan = nominal_plan(model, PathReference(lambda t: jnp.sin(t)[None]), jnp.linspace(0.0, 1.0, 11))
    law = tracking_lqr(model, plan, jnp.eye(2), jnp.eye(1))
    tau = law(0.5, jnp.array([0.4]), jnp.array([0.9]))  # N m
    ```
    """
    input_matrix = _input_matrix(model, inputs, plan.v.dtype)
    final = state_cost if final_cost is None else final_cost
    linearise_row = lambda q, v, tau: linearise(model, q, v, tau, inputs=input_matrix, passive=passive)
    a, b = jax.vmap(linearise_row)(plan.q, plan.v, plan.effort)
    _, gains = riccati_along(plan.times, a, b, state_cost, input_cost, final)
    return TrackingFeedback(model, plan, gains, input_matrix)
