"""jaxdyn: the six works as a user writes them, `vmap` over the leading axis and the model as an argument."""

import jax
import jax.numpy as jnp

import jaxdyn as jd
from benchmarks._problems import FORWARD, GRAD_MODEL, GRAD_STATE, JACOBIAN, MASS, RNEA, Problem

ENGINE, CONSTANT = "jaxdyn", "jaxdyn, model constant"


def _jacobian(model, q, v, tau):
    d = jd.forward_dynamics_derivatives(model, q, v, tau)
    return d.dq, d.dv, d.dtau


def _state_gradient(model, q, v, tau, weights):
    scalar = lambda q, v, tau: weights @ jd.forward_dynamics(model, q, v, tau)
    return jax.grad(scalar, argnums=(0, 1, 2))(q, v, tau)


def _model_gradient(batched: bool):
    def gradient(model, q, v, tau, weights):
        def scalar(model):
            run = jax.vmap(jd.forward_dynamics, (None, 0, 0, 0)) if batched else jd.forward_dynamics
            return jnp.sum(run(model, q, v, tau) @ weights)

        return jax.grad(scalar)(model)

    return gradient


def case(work: str, p: Problem, dtype: str, batch: int):
    """Function and arguments; a batch of one is a plain call without `vmap`."""
    index = slice(batch) if batch > 1 else 0
    q, v, a, tau = (jnp.asarray(x[index], dtype) for x in (p.q, p.v, p.a, p.tau))
    weights = jnp.asarray(p.weights, dtype)
    model = p.model.astype(dtype)
    args = {RNEA: (q, v, a), MASS: (q,)}.get(work, (q, v, tau))
    if work == GRAD_MODEL:
        return _model_gradient(batch > 1), (model, *args, weights)
    one = {
        RNEA: lambda m, q, v, a: jd.rnea(m, q, v, a),
        MASS: lambda m, q: jd.mass_matrix(m, q),
        FORWARD: lambda m, q, v, tau: jd.forward_dynamics(m, q, v, tau),
        JACOBIAN: _jacobian,
        GRAD_STATE: _state_gradient,
    }[work]
    axes = (None, *(0 for _ in args))
    if work == GRAD_STATE:
        args, axes = (*args, weights), (*axes, None)
    return (jax.vmap(one, axes) if batch > 1 else one), (model, *args)
