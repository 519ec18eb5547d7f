"""The fixed point of a return map with derivatives by the implicit function theorem, in both modes and of any order."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._numerics import dense_derivatives, moving_arrays
from jaxdyn._types import Array, PyTree
from jaxdyn.kinematics import configuration_velocity
from jaxdyn.simulation.orbits._newton import Iterate, Linearisation, solve_fixed_point
from jaxdyn.simulation.orbits._return import Return, deviation, displace
from jaxdyn.simulation.orbits._status import OrbitStatus
from jaxdyn.simulation.system import PartLayout, State, System


class ReturnProblem(eqx.Module):
    """The equation `P(x) = x` of a return map P whose parameters are a list of arrays, the `numbers`."""

    #: `(numbers, state) -> Return`
    evaluate: Callable[[list[Array], State], Return]
    #: the system with these numbers
    system: Callable[[list[Array]], System]
    layout: PartLayout
    n: int = eqx.field(static=True)

    def displace(self, numbers, x: State, e) -> State:
        """`x (+) e`."""
        return displace(self.system(numbers), self.layout, x, e)

    def local(self, numbers, x: State, e):
        """`P(x (+) e) (-) x` and the time, `(n + 1,)`, and the whole return."""
        end = self.evaluate(numbers, self.displace(numbers, x, e))
        return jnp.append(deviation(self.system(numbers), self.layout, x, end.state), end.time), end

    def linearise(self, numbers, moving: list[int], x: State) -> Linearisation:
        """The return from x, its derivatives with respect to the tangent space at x, and to the `moving` numbers."""

        def local(e, inputs):
            y, end = self.local(_replace(numbers, moving, inputs), x, e)
            return y, (y, end)

        at = jnp.zeros(self.n, x.v.dtype), [numbers[i] for i in moving]
        (slopes, number_slopes), (y, end) = jax.jacfwd(local, (0, 1), has_aux=True)(*at)
        return Linearisation(y[:-1], slopes[:-1], y[-1], slopes[-1], number_slopes, end.has_returned, end.simulation)


def find_fixed_point(problem: ReturnProblem, numbers: list[Array], guess: State, tolerance, limit):
    """`(state, time, iterate)` at the fixed point; state and time have derivatives with respect to the numbers."""
    leaves, tree = jax.tree.flatten(guess)

    @jax.custom_jvp
    def run(*inputs):
        return _search(problem, tree, [], *inputs)[:2]

    def rule(primals, tangents):
        numbers, dnumbers = primals[0], tangents[0]
        search = _differentiable_search(problem, tree, moving_arrays(dnumbers), run)
        (leaves, time), it, slopes = search(*primals)
        dx, dtime = _implicit_tangents(problem, numbers, dnumbers, jax.tree.unflatten(tree, leaves), slopes, it)
        return ((leaves, time), it), ((jax.tree.leaves(dx), dtime), jax.tree.map(_zero_tangent, it))

    run.defjvp(rule, symbolic_zeros=True)
    (leaves, time), it = run(numbers, *jax.lax.stop_gradient((leaves, tolerance, limit)))
    return jax.tree.unflatten(tree, leaves), time, jax.lax.stop_gradient(it)


def _search(problem: ReturnProblem, tree, moving: list[int], numbers, leaves, tolerance, limit):
    """The state and the time at the fixed point, the iterate, and the slopes of the return there.

    The search computes the slopes with respect to the `moving` numbers along with those with respect to the state, so
    that the motion is compiled once.
    """
    it = solve_fixed_point(
        lambda x: problem.linearise(numbers, moving, x),
        lambda x, e: problem.displace(numbers, x, e),
        jax.tree.unflatten(tree, leaves),
        [numbers[i].shape for i in moving],
        problem.n,
        tolerance,
        limit,
    )
    step = jnp.where(it.status == OrbitStatus.CONVERGED, it.step, 0)
    end = problem.displace(numbers, it.state, step)
    time = it.point.time + it.point.time_slope @ step
    point = it.point._replace(number_slopes=[])
    return (jax.tree.leaves(end), time), it._replace(point=point), _slopes(it.point)


def _differentiable_search(problem: ReturnProblem, tree, moving: list[int], run: Callable) -> Callable:
    """`_search` with derivatives: those of `run` for its solution, and second derivatives of the return."""

    @jax.custom_jvp
    def search(*inputs):
        return _search(problem, tree, moving, *inputs)

    def separate(numbers, *others):
        (leaves, time), it = run(numbers, *others)
        return (leaves, time), it, _return_slopes(problem, numbers, moving, jax.tree.unflatten(tree, leaves))

    search.defjvp(lambda primals, tangents: jax.jvp(separate, primals, tangents))
    return search


def _return_slopes(problem: ReturnProblem, numbers, moving: list[int], x: State):
    """Derivatives of the return with respect to the tangent space at x and to the moving numbers, differentiable."""
    leaves, tree = jax.tree.flatten(x)
    count = len(numbers)

    def slopes(arrays):
        return _slopes(problem.linearise(arrays[:count], moving, jax.tree.unflatten(tree, arrays[count:])))

    return dense_derivatives(slopes)([*numbers, *leaves])


def _slopes(point: Linearisation):
    """Derivatives of the deviation and of the time, with respect to the state and to the numbers."""
    return jnp.append(point.jacobian, point.time_slope[None], axis=0), point.number_slopes


def _implicit_tangents(problem: ReturnProblem, numbers, dnumbers, x: State, slopes, it: Iterate) -> tuple[State, Array]:
    """`dx = (1 - D_x P)^-1 D_p P dp` and `dT = D_x T dx + D_p T dp`; zero if there is no fixed point."""
    is_sound = it.status == OrbitStatus.CONVERGED
    by_state, by_numbers = jax.tree.map(lambda j: jnp.where(is_sound, j, 0), slopes)
    moving = moving_arrays(dnumbers)
    forced = sum(
        (jnp.tensordot(j, dnumbers[i], dnumbers[i].ndim) for i, j in zip(moving, by_numbers, strict=True)),
        jnp.zeros(problem.n + 1, x.v.dtype),
    )
    e = jnp.linalg.solve(jnp.eye(problem.n, dtype=x.v.dtype) - by_state[:-1], forced[:-1])
    return _tangent_state(problem, numbers, x, e), by_state[-1] @ e + forced[-1]


def differentiable_jacobian(problem: ReturnProblem, numbers: list[Array], x: State, it: Iterate) -> Array:
    """The Jacobian of the return map at the fixed point, with derivatives.

    Its value is known from Newton's method. Its derivatives are second derivatives of the return, which
    `jax.checkpoint` leaves out of gradients that do not need them.
    """
    leaves, tree = jax.tree.flatten(x)

    @jax.custom_jvp
    def known(value, status, arrays):
        return value

    def rule(primals, tangents):
        (value, status, arrays), (_, _, darrays) = primals, tangents
        moving, k = moving_arrays(darrays), len(numbers)

        def jacobian(arrays):
            state = jax.tree.unflatten(tree, arrays[k:])
            slope = jax.jacfwd(lambda e: problem.local(arrays[:k], state, e)[0][:-1])
            return slope(jnp.zeros(problem.n, value.dtype))

        moved = lambda now: dense_derivatives(jacobian)(_replace(arrays, moving, now))
        columns = jax.jacfwd(moved)([arrays[i] for i in moving])
        columns = [jnp.where(status == OrbitStatus.CONVERGED, c, 0) for c in columns]
        terms = [jnp.tensordot(c, darrays[i], darrays[i].ndim) for i, c in zip(moving, columns, strict=True)]
        return known(value, status, arrays), sum(terms, jnp.zeros_like(value))

    known.defjvp(rule, symbolic_zeros=True)
    return jax.checkpoint(known)(it.point.jacobian, it.status, [*numbers, *leaves])


def _replace(values: list, positions: list[int], new: list) -> list:
    out = list(values)
    for i, x in zip(positions, new, strict=True):
        out[i] = x
    return out


def _tangent_state(problem: ReturnProblem, numbers, x: State, e) -> State:
    """The tangent of `x (+) e` at `e = 0`, a state of rates."""
    system = problem.system(numbers)
    nv = system.model.nv
    return State(
        configuration_velocity(system.model, x.q, e[:nv]), e[nv : 2 * nv], problem.layout.unflatten(e[2 * nv :])
    )


def _zero_tangent(x) -> PyTree:
    inexact = jnp.issubdtype(x.dtype, jnp.inexact)
    return jnp.zeros_like(x) if inexact else np.zeros(x.shape, jax.dtypes.float0)
