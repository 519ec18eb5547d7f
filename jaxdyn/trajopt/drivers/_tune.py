"""Tuning of gains, policies and designs: descent on any differentiable cost by an optimiser of optax."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from jaxdyn._errors import ArgumentError, ConvergenceError, check_count
from jaxdyn._numerics import as_function
from jaxdyn._status import Status
from jaxdyn._types import Array, Float, Int, PyTree, Scalar


class TuningStatus(Status):
    """Outcome of `tune`."""

    IMPROVED = 0, "the cost decreased"
    NOT_IMPROVED = 1, "no step reduced the cost: the start is a minimum, or the optimiser's steps are too long"
    NOT_FINITE = 2, "the cost or its gradient was not finite at some step, and the descent ended there"


class Tuned(eqx.Module):
    """Result of `tune`."""

    #: parameters of the least cost, a pytree like the initial ones
    parameters: PyTree
    cost: Float[Array, ""]
    #: cost before each step and after the last one; NaN behind a failure
    history: Float[Array, " steps"]
    #: norm of the gradient at the parameters, of logarithms where they are positive
    gradient_norm: Float[Array, ""]
    #: a `TuningStatus`
    status: Int[Array, ""]

    def checked(self) -> "Tuned":
        """Returns this result, or raises `ConvergenceError` if the cost was not reduced; for concrete values."""
        status = TuningStatus(int(self.status))
        if status != TuningStatus.IMPROVED:
            raise ConvergenceError(f"the tuning ended with {status}; reduce the learning rate, or check the cost")
        return self


def tune(
    cost: Callable[[PyTree], Scalar],
    parameters: PyTree,
    optimiser: optax.GradientTransformation | None = None,
    *,
    steps: int = 100,
    positive: bool = False,
) -> Tuned:
    """Minimises a cost over the floating-point leaves of any pytree, by an optimiser of optax, in one program.

    Gains of a law, weights of a neural policy, masses and lengths of a robot are all leaves, and `simulate` is
    differentiable, so any function of a motion can be a cost.

    Arguments:

    * `cost`: function from a pytree like `parameters` to a scalar, compared by identity.
    * `parameters`: the initial pytree. Leaves that are not floating-point arrays stay as they are.
    * `optimiser`: an `optax.GradientTransformation`, by default `optax.adam(0.05)`; `optax.lbfgs()` too.
    * `steps`: number of steps.
    * `positive`: whether all leaves are positive; the optimiser then works on their logarithms.

    Returns a `Tuned` with the parameters of least cost, the history of the cost, and a status; `checked()` raises where
    nothing improved. Pure: `jax.vmap` over initial parameters tunes from several starts.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn import control, trajopt

    arm = jd.robots.pendulum()
    ts, zero = jnp.linspace(0.0, 2.0, 21), jnp.zeros(1)


    def cost(law):
        path = jd.simulate(arm, zero, zero, ts, effort=law, dt=0.02)
        return jnp.mean((path.q - law.reference) ** 2)


    law = control.GravityPD(arm, jnp.array([1.0]), jnp.array([5.0]), jnp.array([0.5]))
    gains = lambda x: control.GravityPD(arm, jnp.array([1.0]), *x)
    tuned = trajopt.tune(lambda x: cost(gains(x)), (law.kp, law.kd), steps=20, positive=True).checked()
    assert tuned.cost < tuned.history[0]
    ```
    """
    check_count("steps", steps)
    optimiser = optax.adam(0.05) if optimiser is None else optimiser
    if not isinstance(optimiser, optax.GradientTransformation):
        raise ArgumentError(f"optimiser is {optimiser!r:.60}, expected one of optax; pass for example optax.adam(0.05)")
    free, fixed = eqx.partition(parameters, eqx.is_inexact_array)
    if not jax.tree.leaves(free):
        raise ArgumentError("parameters has no floating-point array to tune; convert its numbers by jax.numpy.asarray")
    start = jax.tree.map(jnp.log, free) if positive else free
    return _descend(as_function(cost), start, fixed, optimiser, steps, positive)


@eqx.filter_jit
def _descend(cost, start: PyTree, fixed: PyTree, optimiser, steps: int, positive: bool) -> Tuned:
    optimiser = optax.with_extra_args_support(optimiser)
    insert = lambda z: eqx.combine(jax.tree.map(jnp.exp, z) if positive else z, fixed)
    value = lambda z: cost(insert(z))

    def step(carry, _):
        z, memory, best, is_alive = carry
        f, g = jax.value_and_grad(value)(z)
        norm = optax.tree.norm(g)
        is_alive &= jnp.isfinite(f) & jnp.isfinite(norm)
        is_better = is_alive & (f < best[1])
        best = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), (z, f, norm), best)
        update, following = optimiser.update(g, memory, z, value=f, grad=g, value_fn=value)
        moved = optax.apply_updates(z, update), following
        z, memory = jax.tree.map(lambda new, old: jnp.where(is_alive, new, old), moved, (z, memory))
        return (z, memory, best, is_alive), (jnp.where(is_alive, f, jnp.nan), is_better)

    dtype = jax.eval_shape(value, start).dtype
    worst = jnp.asarray(jnp.inf, dtype)
    norm = jnp.zeros((), jax.eval_shape(optax.tree.norm, start).dtype)
    carry = start, optimiser.init(start), (start, worst, norm), jnp.asarray(True)
    (_, _, (z, f, norm), is_alive), (history, was_better) = jax.lax.scan(step, carry, length=steps + 1)
    improved = jnp.where(was_better[1:].any(), TuningStatus.IMPROVED, TuningStatus.NOT_IMPROVED)
    status = jnp.where(is_alive, improved, TuningStatus.NOT_FINITE).astype(jnp.int32)
    return Tuned(insert(z), f, history, norm, status)
