"""A variational step: the discrete principle of least action."""

from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn.dynamics import mass_matrix, rnea
from jaxdyn.kinematics import difference, integrate
from jaxdyn.simulation._manifold import OnManifold
from jaxdyn.simulation._state import Charted, State, not_converged


class StraightInterpolation(diffrax.AbstractLocalInterpolation):
    """Constant velocity in the chart of one step."""

    t0: Any
    t1: Any
    base: Any
    offset: Any
    y0: State
    y1: State

    def evaluate(self, t0, t1=None, left=True):
        s = (t0 - self.t0) / jnp.where(self.t1 > self.t0, self.t1 - self.t0, 1)
        blend = lambda a, b: a + s * (b - a)
        parts = jax.tree.map(blend, self.y0.parts, self.y1.parts)
        return Charted(self.base, s * self.offset, blend(self.y0.v, self.y1.v), parts)


class Variational(diffrax.AbstractSolver):
    """The midpoint rule of discrete mechanics, on the configuration manifold.

    With `L = T - U` and the displacement x from q_0 to `q_1 = q_0 (+) x`, the discrete Lagrangian is
    `L_d(q_0, q_1) = h L(q, v)`, where q is halfway and `qdot(v) = (q_1 - q_0) / h`. A step solves the first of

        M(q_0) v_0 + D_1 L_d + h f / 2 = 0,    M(q_1) v_1 = D_2 L_d + h f / 2

    for x by a Newton method; D_1 and D_2 are slopes in tangent directions at q_0 and q_1, and f is the generalised
    force of all parts at the midpoint (Marsden and West 2001, "Discrete mechanics and variational integrators",
    sections 1.5 and 3.2). Second order, symplectic for any M(q): the energy error stays bounded, and the momenta of
    symmetries are kept to the accuracy of the solve. It has no error estimate, so give `simulate` a step `dt`.
    """

    #: accuracy of the solve for x, relative to its size; by default some units of rounding
    tolerance: float | None = None
    max_iterations: int = 50
    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = StraightInterpolation

    def order(self, terms):
        return 2

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        model, h = args.model, t1 - t0
        q0, v0 = y0.q, y0.v
        early = args.action(t0, y0)
        half = State(q0, v0, jax.tree.map(lambda x, r: x + h / 2 * r, y0.parts, early.rate))
        middle = lambda x: _action_at(args, t0 + h / 2, half, x, h)
        p0 = mass_matrix(model, q0) @ v0

        mass = mass_matrix(model, q0)
        p0, factor = mass @ v0, cho_factor(jax.lax.stop_gradient(mass))
        balance = lambda x: p0 + _slopes(model, q0, x, h)[0] + h / 2 * middle(x)[0]

        def solve(f, x):
            """Newton's method with the mass matrix for its slope, `df/dx = -M / h` up to terms of order h."""
            eps = jnp.finfo(x.dtype).eps
            tolerance = 64 * eps if self.tolerance is None else self.tolerance

            def improve(c):
                x, last, _, n = c
                step = h * cho_solve(factor, f(x))
                return x + step, jnp.max(jnp.abs(step)) / jnp.max(jnp.abs(x) + eps), last, n + 1

            def going(c):
                _, step, last, n = c
                stalled = (step > last / 2) & (step < jnp.sqrt(eps))  # at the level of rounding
                return ~(step <= tolerance) & ~stalled & (n < self.max_iterations)

            inf = jnp.asarray(jnp.inf, x.dtype)
            x, _, _, n = jax.lax.while_loop(going, improve, (x, inf, inf, jnp.asarray(0)))
            return x, n.astype(x.dtype)

        x, n = jax.lax.custom_root(balance, h * v0, solve, _solve_dense, has_aux=True)
        q1 = integrate(model, q0, x)
        force, rates = middle(x)
        v1 = cho_solve(cho_factor(mass_matrix(model, q1)), _slopes(model, q0, x, h)[1] + h / 2 * force)
        y1 = State(q1, v1, jax.tree.map(lambda x, r: x + h * r, y0.parts, rates))
        kinds = diffrax.RESULTS
        result = kinds.where(n < self.max_iterations, kinds.successful, not_converged())
        return y1, None, {"base": q0, "offset": x, "y0": y0, "y1": y1}, None, result

    def func(self, terms, t0, y0, args):
        return OnManifold(diffrax.Euler()).func(terms, t0, y0, args)


def _solve_dense(linear, b):
    return jnp.linalg.solve(jax.jacfwd(linear)(jnp.zeros_like(b)), b)


def _middle(model, a, b, h):
    """Configuration halfway between a and b in their coordinates, and the velocity there.

    Averages of coordinates, unlike halves of a screw motion, leave uniform translation of a free body as it is. The
    mean of two quaternions is the rotation halfway, once normalised, as it is where it is used.
    """
    q = (a + b) / 2
    zero = jnp.zeros_like(q)
    return q, jax.jvp(lambda s: difference(model, q, q + s), (zero,), ((b - a) / h,))[1]


def _slopes(model, q0, x, h):
    """Slopes of `L_d(q_0, q_0 (+) x)` in tangent directions at both arguments.

    Of the potential energy only its slope at the midpoint is needed, which is `rnea(q, 0, 0)`; the kinetic energy is
    `v . rnea(q, 0, v) / 2` without gravity.
    """
    q1, zero = integrate(model, q0, x), jnp.zeros_like(x)
    middle = (q0 + q1) / 2
    weight = rnea(model, middle, zero, zero)
    weightless = eqx.tree_at(lambda m: m.gravity, model, jnp.zeros_like(model.gravity))

    def action(shifts):
        q, v = _middle(model, integrate(model, q0, shifts[0]), integrate(model, q1, shifts[1]), h)
        kinetic = v @ rnea(weightless, q, zero, v) / 2
        return h * (kinetic - weight @ difference(model, middle, q))

    return jax.grad(action)((zero, zero))


def _action_at(system, t, half: State, x, h):
    """Generalised force, that of gravity left out, and rates of the parts' states at the midpoint."""
    model = system.model
    q, v = _middle(model, half.q, integrate(model, half.q, x), h)
    action = system.action(t, State(q, v, half.parts))
    force = action.effort
    if action.external is not None:
        zero = jnp.zeros_like(force)
        force = force + rnea(model, q, zero, zero) - rnea(model, q, zero, zero, action.external)
    return force, action.rate
