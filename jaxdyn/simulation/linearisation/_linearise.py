"""Linearisation of a system at a state, over configuration, velocity and the states of the parts."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import check_shape
from jaxdyn._types import Array, Float
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model import Model
from jaxdyn.simulation.system import PartLayout, State, System, as_system, part_layout


def linearise_system(
    system: Model | System, state: State, inputs: Float[Array, " m"] | None = None, *, t: ArrayLike = 0.0
) -> tuple[Float[Array, "n n"], Float[Array, "n m"]]:
    """Linearises the vector field of a system: `xdot = A x + B u`, with deviations x and u from a state and inputs.

    `x = (q (-) q_0, v - v_0, states of the parts - those of the state)` has `n = 2 nv + k` entries, with k states of
    the parts in the order of `jaxdyn.trajopt.Robot`. The rate of `q (-) q_0` is that between motions from both
    configurations, as in `jaxdyn.control.linearise`.

    Arguments:

    * `system`: a model or a system in continuous time.
    * `state`: the operating point; parts without a given state are in their initial states.
    * `inputs`: the inputs of the actuators `(m,)`, or efforts `(nv,)` for a system without actuators that take inputs.
      By default efforts are zero and inputs come from the controller of the system: A is then the matrix of the closed
      loop, with the memory of the controller among the states, and u is added to the output of the controller.
    * `t`: time, s.

    Returns A and B, by forward-mode differentiation. Raises `ModelError` for sampled parts, and for actuators without
    a source of their inputs.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.actuators import DcMotor
    from jaxdyn.simulation import State, linearise_system

    pendulum = jd.robots.pendulum()
    motor = DcMotor(pendulum.joint_names[0], constant=0.05, resistance=1.0, inductance=1e-3, gear=20.0)
    a, b = linearise_system(jd.System(pendulum, (motor,)), State(jnp.zeros(1), jnp.zeros(1)), jnp.zeros(1))
    assert a.shape == (3, 3) and jnp.allclose(b[:, 0], jnp.array([0.0, 0.0, 1e3]))  # 1 / L
    ```
    """
    system = as_system(system)
    layout = part_layout(system, "a linearisation")
    t = jnp.asarray(t, jnp.result_type(state.q, state.v))
    state = system.initial(state.q, state.v, t, state.parts)
    if inputs is None:
        given = None if system.num_inputs else jnp.zeros_like(state.v)
    else:
        name, size = ("inputs", system.num_inputs) if system.num_inputs else ("efforts", system.model.nv)
        given = check_shape(f"{name} of a linearisation", jnp.asarray(inputs, state.v.dtype), (size,))
    return _jacobians(system, layout, state, given, t)


@eqx.filter_jit
def _jacobians(system: System, layout: PartLayout, state: State, given, t):
    model, nv, dtype = system.mounted_model, system.model.nv, state.v.dtype
    nominal = layout.flatten(state.parts, dtype)
    drift = system.motion.velocity(model, t, state.q, state.v)

    def rate(x, u):
        q = integrate(model, state.q, x[:nv])
        here = State(q, state.v + x[nv : 2 * nv], layout.unflatten(nominal + x[2 * nv :]))
        if system.num_inputs:
            commands = system.inputs(t, here) if given is None else given
            action, a = system.accelerate(t, here, inputs=commands + u)
        else:
            action, a = system.accelerate(t, here, effort=given + u)
        velocity = system.motion.velocity(model, t, q, here.v)
        return jnp.concatenate(
            [_deviation_rate(model, state.q, drift, q, velocity), a, layout.flatten(action.rate, dtype)]
        )

    x, u = jnp.zeros(2 * nv + layout.size, dtype), jnp.zeros(system.num_inputs or nv, dtype)
    return jax.jacfwd(rate, (0, 1))(x, u)


def _deviation_rate(model: Model, q0, v0, q, v):
    """Rate of `q (-) q0` where q0 moves with v0 and q with v, in the chart that moves with q0."""
    deviation = lambda s: difference(model, integrate(model, q0, s * v0), integrate(model, q, s * v))
    return jax.jvp(deviation, (jnp.zeros((), v.dtype),), (jnp.ones((), v.dtype),))[1]
