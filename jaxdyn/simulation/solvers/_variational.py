"""The variational integrator: the discrete principle of least action."""

from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._types import Array, Float, PyTree
from jaxdyn.dynamics import mass_matrix_of_bodies
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model import Model
from jaxdyn.recursion import Bodies, bodies
from jaxdyn.simulation.solvers._contract import AbstractSystemSolver
from jaxdyn.simulation.solvers._free_motion import check_free_motion
from jaxdyn.simulation.solvers._manifold import OnManifold
from jaxdyn.simulation.solvers._momenta import momentum_and_slope
from jaxdyn.simulation.system import ChartedState, State, System, has_vector_coordinates, unsolved_result


class ConstantVelocityInterpolation(diffrax.AbstractLocalInterpolation):
    """Constant velocity in the chart of one step."""

    t0: Float[Array, "*batch"]
    t1: Float[Array, "*batch"]
    base: Float[Array, "*batch nq"]
    offset: Float[Array, "*batch nv"]
    y0: State
    y1: State

    def evaluate(self, t0, t1=None, left=True):
        s = (t0 - self.t0) / jnp.where(self.t1 > self.t0, self.t1 - self.t0, 1)
        blend = lambda a, b: a + s * (b - a)
        parts = jax.tree.map(blend, self.y0.parts, self.y1.parts)
        return ChartedState(self.base, self.offset * s, blend(self.y0.v, self.y1.v), parts)


class Variational(diffrax.AbstractSolver, AbstractSystemSolver):
    """The midpoint rule of discrete mechanics, on the configuration manifold; for the free motion of the tree only.

    With `L = T - U` and the displacement x from q_0 to `q_1 = q_0 (+) x`, the discrete Lagrangian is
    `L_d(q_0, q_1) = h L(q, v)`, where q is the midpoint and `qdot(v) = (q_1 - q_0) / h`. A step solves the first of

        M(q_0) v_0 + D_1 L_d + h f D_1 q = 0,    M(q_1) v_1 = D_2 L_d + h f D_2 q

    for x by a Newton method. D_1 and D_2 are derivatives along tangent directions at q_0 and q_1, and f is the
    generalised force of all parts at the midpoint (Marsden and West 2001, "Discrete mechanics and variational
    integrators", sections 1.5 and 3.2). The method is of second order and symplectic for any M(q): the energy error
    stays bounded, and the momenta of symmetries are conserved to the accuracy of the solve. There is no error estimate,
    so give `simulate` a step `dt`. Derivatives follow from the equations by the implicit function theorem, not from the
    iterates.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import Variational

    arm = jd.robots.double_pendulum()
    ts = jnp.linspace(0.0, 20.0, 21)
    path = jd.simulate(arm, jnp.array([0.4, -0.9]), jnp.zeros(2), ts, dt=0.02, solver=Variational())
    assert jnp.abs(path.energy - path.energy[0]).max() < 0.05  # J
    ```
    """

    #: accuracy of the solve for x, relative to the size of x; by default some units of rounding
    tolerance: float | None = None
    max_iterations: int = 50
    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = ConstantVelocityInterpolation

    def check_system(self, system):
        check_free_motion(self, system)

    def with_loop_kind(self, kind):
        return self

    def on_manifold(self, model):
        return self

    def order(self, terms):
        return 2

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        model, h = args.mounted_model, t1 - t0
        q0, v0 = y0.q, y0.v
        b = bodies(model)
        p0, _ = momentum_and_slope(model, b, q0, v0)
        rates_at_start = None if y0.parts is None else args.action(t0, y0).rate
        parts = jax.tree.map(lambda x, r: x + h / 2 * r, y0.parts, rates_at_start)
        end_momenta = lambda x: _end_momenta(args, b, t0 + h / 2, q0, x, h, parts)
        slope = mass_matrix_of_bodies(model, b, q0) + _passive_slope(args, h)
        factor = cho_factor(jax.lax.stop_gradient(slope))
        newton = lambda r: h * cho_solve(factor, r)

        def residual(z):
            start, end = end_momenta(z[0])
            return p0 - start, jax.tree.map(jnp.subtract, z[1], end)

        def solve(residual, z):
            x, n = _newton_root(lambda x: residual((x, z[1]))[0], z[0], newton, self.tolerance, self.max_iterations)
            return (x, end_momenta(x)[1]), n

        guess = h * v0, (p0, rates_at_start)
        (x, (p1, rates)), n = jax.lax.custom_root(residual, guess, solve, _solve_tangents, has_aux=True)
        q1 = integrate(model, q0, x)
        v1 = cho_solve(cho_factor(mass_matrix_of_bodies(model, b, q1)), p1)
        y1 = State(q1, v1, jax.tree.map(lambda x, r: x + h * r, y0.parts, rates))
        kinds = diffrax.RESULTS
        result = kinds.where(n < self.max_iterations, kinds.successful, unsolved_result())
        return y1, None, {"base": q0, "offset": x, "y0": y0, "y1": y1}, None, result

    def func(self, terms, t0, y0, args):
        return OnManifold(diffrax.Euler()).func(terms, t0, y0, args)


def _passive_slope(system: System, h) -> Float[Array, "nv nv"]:
    """`h^2 K / 4 + h D / 2` of the springs and dampers of the joints, by which stiff joints change the slope M / h."""
    p = system.mounted_model.properties
    return jnp.diag(h**2 / 4 * p.stiffness + h / 2 * p.damping) * system.passive


def _newton_root(f, x, newton_step, tolerance: float | None, max_iterations: int):
    """A root of f by Newton's method with an approximate Jacobian, which `newton_step` inverts.

    `df/dx = -M / h - h K / 4 - D / 2` with the springs K and dampers D of the joints, up to terms of order h.

    Returns the root and the number of iterations.
    """
    eps = jnp.finfo(x.dtype).eps
    least = 64 * eps if tolerance is None else tolerance

    def iterate(carry):
        x, size, _, n = carry
        step = newton_step(f(x))
        return x + step, jnp.max(jnp.abs(step)) / jnp.max(jnp.abs(x) + eps), size, n + 1

    def is_unfinished(carry):
        _, size, previous, n = carry
        is_stalled = (size > previous / 2) & (size < jnp.sqrt(eps))  # at the level of rounding
        return ~(size <= least) & ~is_stalled & (n < max_iterations)

    inf = jnp.asarray(jnp.inf, x.dtype)
    x, _, _, n = jax.lax.while_loop(is_unfinished, iterate, (x, inf, inf, jnp.asarray(0)))
    return x, n.astype(x.dtype)


def _solve_tangents(linear, b):
    """Tangents of x and of the quantities z at the end of the step: `J dx = b_x` and `dz - E dx = b_z`."""
    zero = jax.tree.map(jnp.zeros_like, b[1])
    jacobian, ends = jax.vmap(lambda x: linear((x, zero)), out_axes=-1)(jnp.eye(b[0].size, dtype=b[0].dtype))
    x = jnp.linalg.solve(jacobian, b[0])
    return x, jax.tree.map(lambda b, e: b - e @ x, b[1], ends)


def _end_momenta(
    system: System, b: Bodies, t, q0, x, h, parts
) -> tuple[Float[Array, " nv"], tuple[Float[Array, " nv"], PyTree]]:
    """The momentum at the start of a step with displacement x; the momentum at its end, with the parts' rates.

    `-D_1 L_d - h f D_1 q` and `D_2 L_d + h f D_2 q`. Only the midpoint's q and v are differentiated with respect to the
    ends of the step; the derivatives of the Lagrangian are known.
    """
    model = system.mounted_model
    is_vector = has_vector_coordinates(model)
    q1 = q0 + x if is_vector else integrate(model, q0, x)
    q, v = ((q0 + q1) / 2, x / h) if is_vector else _midpoint(model, q0, q1, h)
    action: Any = system.action(t, State(q, v, parts))
    p, slope = momentum_and_slope(model, b, q, v, action.external)
    force = slope + action.effort
    if is_vector:
        return p - h / 2 * force, (p + h / 2 * force, action.rate)
    zero = jnp.zeros_like(x)

    def midpoint_of(start, end):
        q_mid, v = _midpoint(model, integrate(model, q0, start), integrate(model, q1, end), h)
        return difference(model, q, q_mid), v

    start, end = jax.vjp(midpoint_of, zero, zero)[1]((h * force, h * p))
    return -start, (end, action.rate)


def _midpoint(model: Model, a, b, h):
    """The mean of the coordinates of a and b, and the velocity there.

    Means of coordinates, unlike halves of a screw motion, preserve uniform translation of a free body. The
    mean of two quaternions, once normalised where it is used, is the rotation halfway between them.
    """
    q = (a + b) / 2
    zero = jnp.zeros_like(q)
    return q, jax.jvp(lambda s: difference(model, q, q + s), (zero,), ((b - a) / h,))[1]
