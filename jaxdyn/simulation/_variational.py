"""A variational step: the discrete principle of least action."""

from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn.dynamics._forward import mass_of_bodies
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model._bodies import bodies
from jaxdyn.simulation._canonical import canonical
from jaxdyn.simulation._manifold import OnManifold
from jaxdyn.simulation._state import Charted, State, not_converged
from jaxdyn.simulation._system import has_vector_coordinates


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

        M(q_0) v_0 + D_1 L_d + h f D_1 q = 0,    M(q_1) v_1 = D_2 L_d + h f D_2 q

    for x by a Newton method; D_1 and D_2 are slopes in tangent directions at q_0 and q_1, and f is the generalised
    force of all parts at the midpoint (Marsden and West 2001, "Discrete mechanics and variational integrators",
    sections 1.5 and 3.2). Second order, symplectic for any M(q): the energy error stays bounded, and the momenta of
    symmetries are kept to the accuracy of the solve. It has no error estimate, so give `simulate` a step `dt`.
    Derivatives follow from the equations by the theorem of implicit functions, not from the iterates.
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
        b = bodies(model)
        p0, _ = canonical(model, b, q0, v0)
        early = None if y0.parts is None else args.action(t0, y0).rate
        parts = jax.tree.map(lambda x, r: x + h / 2 * r, y0.parts, early)
        across = lambda x: _across(args, b, t0 + h / 2, q0, x, h, parts)
        factor = cho_factor(jax.lax.stop_gradient(mass_of_bodies(model, b, q0)))
        newton = lambda r: h * cho_solve(factor, r)

        def residual(z):
            start, end = across(z[0])
            return p0 - start, jax.tree.map(jnp.subtract, z[1], end)

        def solve(residual, z):
            x, n = _root(lambda x: residual((x, z[1]))[0], z[0], newton, self.tolerance, self.max_iterations)
            return (x, across(x)[1]), n

        guess = h * v0, (p0, early)
        (x, (p1, rates)), n = jax.lax.custom_root(residual, guess, solve, _solve_ends, has_aux=True)
        q1 = integrate(model, q0, x)
        v1 = cho_solve(cho_factor(mass_of_bodies(model, b, q1)), p1)
        y1 = State(q1, v1, jax.tree.map(lambda x, r: x + h * r, y0.parts, rates))
        kinds = diffrax.RESULTS
        result = kinds.where(n < self.max_iterations, kinds.successful, not_converged())
        return y1, None, {"base": q0, "offset": x, "y0": y0, "y1": y1}, None, result

    def func(self, terms, t0, y0, args):
        return OnManifold(diffrax.Euler()).func(terms, t0, y0, args)


def _root(f, x, slope, tolerance: float | None, max_iterations: int):
    """A root of f by Newton's method with the mass matrix for its slope, `df/dx = -M / h` up to terms of order h."""
    eps = jnp.finfo(x.dtype).eps
    enough = 64 * eps if tolerance is None else tolerance

    def improve(c):
        x, last, _, n = c
        step = slope(f(x))
        return x + step, jnp.max(jnp.abs(step)) / jnp.max(jnp.abs(x) + eps), last, n + 1

    def going(c):
        _, step, last, n = c
        stalled = (step > last / 2) & (step < jnp.sqrt(eps))  # at the level of rounding
        return ~(step <= enough) & ~stalled & (n < max_iterations)

    inf = jnp.asarray(jnp.inf, x.dtype)
    x, _, _, n = jax.lax.while_loop(going, improve, (x, inf, inf, jnp.asarray(0)))
    return x, n.astype(x.dtype)


def _solve_ends(linear, b):
    """Tangents of x and of what follows from it, `J dx = b_x` and `dz - E dx = b_z`."""
    still = jax.tree.map(jnp.zeros_like, b[1])
    jacobian, ends = jax.vmap(lambda x: linear((x, still)), out_axes=-1)(jnp.eye(b[0].size, dtype=b[0].dtype))
    x = jnp.linalg.solve(jacobian, b[0])
    return x, jax.tree.map(lambda b, e: b - e @ x, b[1], ends)


def _across(system, b, t, q0, x, h, parts):
    """The momentum at the start of a step over x, and that at its end with the rates of the parts' states.

    `-D_1 L_d - h f D_1 q` and `D_2 L_d + h f D_2 q`; of q and v, which are halfway, only the slopes in the ends are
    differentiated, those of the Lagrangian being known.
    """
    model = system.model
    straight = has_vector_coordinates(model)
    q1 = q0 + x if straight else integrate(model, q0, x)
    q, v = ((q0 + q1) / 2, x / h) if straight else _middle(model, q0, q1, h)
    action = system.action(t, State(q, v, parts))
    p, slope = canonical(model, b, q, v, action.external)
    force = slope + action.effort
    if straight:
        return p - h / 2 * force, (p + h / 2 * force, action.rate)
    zero = jnp.zeros_like(x)

    def halfway(early, late):
        there, v = _middle(model, integrate(model, q0, early), integrate(model, q1, late), h)
        return difference(model, q, there), v

    early, late = jax.vjp(halfway, zero, zero)[1]((h * force, h * p))
    return -early, (late, action.rate)


def _middle(model, a, b, h):
    """Configuration halfway between a and b in their coordinates, and the velocity there.

    Averages of coordinates, unlike halves of a screw motion, leave uniform translation of a free body as it is. The
    mean of two quaternions is the rotation halfway, once normalised, as it is where it is used.
    """
    q = (a + b) / 2
    zero = jnp.zeros_like(q)
    return q, jax.jvp(lambda s: difference(model, q, q + s), (zero,), ((b - a) / h,))[1]
