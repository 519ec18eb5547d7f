"""Static equilibria of robots with springs."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool

from jaxdyn._errors import ModelError, check_count, check_shape
from jaxdyn._types import Array, Config, Float, Int
from jaxdyn.dynamics._energy import potential_energy
from jaxdyn.dynamics._modes import Energy, stiffness_matrix
from jaxdyn.dynamics._passive import passive_forces
from jaxdyn.dynamics._rnea import gravity_forces
from jaxdyn.kinematics import difference, integrate
from jaxdyn.model import Model
from jaxdyn.recursion import check_state

#: a step is halved at most this often until it decreases the energy or the residual
_HALVINGS = 30
#: residual in units of rounding of the efforts, below which it is zero
_ROUNDING = 1e4


class Equilibrium(NamedTuple):
    """Result of `static_equilibrium`."""

    q: Config
    #: whether the residual is zero up to rounding
    converged: Bool[Array, ""]
    #: efforts that are not balanced, N m or N
    residual: Float[Array, " nv"]
    iterations: Int[Array, ""]


def static_equilibrium(
    model: Model,
    q0: Float[Array, " nq"],
    *,
    effort: Float[Array, " nv"] | None = None,
    energies: Sequence[Energy] = (),
    gravity: bool = True,
    max_iterations: int = 100,
) -> Equilibrium:
    """The configuration at rest under springs, gravity, efforts and forces with a potential, `dU/dq = effort`.

    U is the energy of the springs of the joints, gravity and the given energies, with the Hessian `stiffness_matrix`.
    Newton's method, with the absolute values of the eigenvalues of the Hessian, decreases `U - effort . (q (-) q0)`
    from `q0` on, so that it converges to a stable equilibrium also after large deflections. Derivatives with respect to
    all leaves and the effort are those of the implicit function theorem.

    Arguments:

    * `model`: the robot, mounted (`part.mount(model)`) if parts bring its stiffness. Lock joints without springs that
      are not in equilibrium by themselves (`lock_joints`).
    * `q0`: the configuration from which the search starts, `(nq,)`
    * `effort`: constant efforts, `(nv,)`
    * `energies`: functions `(model, q) -> J`, as for `modes`; a dead load F at a frame is
      `lambda model, q: -F @ frame_pose(model, q, "tip").translation`
    * `gravity`: whether gravity acts

    Returns an `Equilibrium`; `converged` is False after `max_iterations`, or if no step helps. Raises `ModelError` for
    a model with closures.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd

    builder = jd.ModelBuilder()
    rod = jd.spatial.rod(1.0, mass=2.0).moved([0.0, 0.0, 0.5])
    builder.add_link("rod", "world", jd.joints.Revolute([0, 1, 0]), rod, stiffness=15.0, rest=0.2)
    rest = jd.static_equilibrium(builder.build(), jnp.zeros(1))
    assert rest.converged and jnp.isclose(15 * (rest.q[0] - 0.2), 9.81 * jnp.sin(rest.q[0]), atol=1e-4)
    ```
    """
    (q0,) = check_state(model, q0=q0)
    check_count("max_iterations", max_iterations)
    if model.closures:
        raise ModelError(
            "static_equilibrium: the model has closures, whose forces are not considered; give the model of the tree "
            "without closures, or let a damped simulation come to rest"
        )
    given = jnp.zeros(model.nv, q0.dtype) if effort is None else check_shape("effort", effort, (model.nv,))
    problem = _Problem(model, q0, given, tuple(energies), gravity)
    at = lambda x: integrate(model, q0, x)
    # `custom_root` differentiates the residual at the root alone, by the implicit function theorem
    x, iterations = jax.lax.custom_root(
        lambda x: problem.residual(at(x)),
        jnp.zeros(model.nv, q0.dtype),
        lambda _, x: _descend(problem, max_iterations),
        lambda f, y: jnp.linalg.solve(jax.jacfwd(f)(y), y),
        has_aux=True,
    )
    q = at(x)
    return Equilibrium(q, problem.is_solved(q), problem.residual(q), iterations.astype(int))


class _Problem(NamedTuple):
    """The potential whose minimum is the equilibrium, and its derivatives."""

    model: Model
    q0: Array
    effort: Array
    energies: tuple[Energy, ...]
    gravity: bool

    def forces(self, q) -> list[Array]:
        """Efforts of springs, gravity, energies and the given ones, `(nv,)` each, with the sign of `dU/dq`."""
        model, still = self.model, jnp.zeros(self.model.nv, q.dtype)
        terms = [-self.effort, -passive_forces(model, q, still)]
        terms += [gravity_forces(model, q)] if self.gravity else []
        return terms + [jax.grad(lambda x: f(model, integrate(model, q, x)))(still) for f in self.energies]  # noqa: B023

    def residual(self, q) -> Array:
        return jnp.sum(jnp.stack(self.forces(q)), axis=0)

    def is_solved(self, q) -> Array:
        forces = jnp.stack(self.forces(q))
        rounding = _ROUNDING * jnp.finfo(q.dtype).eps * jnp.max(jnp.abs(forces), initial=0)
        return jnp.max(jnp.abs(jnp.sum(forces, axis=0)), initial=0) <= rounding

    def energy(self, q) -> Array:
        model, p = self.model, self.model.properties
        own = jnp.sum(p.stiffness * difference(model, p.rest, q) ** 2) / 2
        own = own - self.effort @ difference(model, self.q0, q)
        weight = potential_energy(model, q) if self.gravity else 0.0
        return own + weight + sum(f(model, q) for f in self.energies)

    def step(self, q) -> Array:
        """Newton's step with the absolute values of the eigenvalues of the Hessian: a direction of descent."""
        hessian = stiffness_matrix(self.model, q, energies=self.energies, gravity=self.gravity)
        values, vectors = jnp.linalg.eigh(hessian)
        values = jnp.abs(values)
        floor = jnp.finfo(q.dtype).eps * jnp.max(values, initial=0)
        values = jnp.maximum(values, jnp.where(floor > 0, floor, 1))
        return -vectors @ ((vectors.T @ self.residual(q)) / values)


def _descend(problem: _Problem, max_iterations: int) -> tuple[Array, Array]:
    """Displacement of the equilibrium from q0 and the number of iterations, as a floating-point number."""
    model = problem.model

    def shorten(q, step):
        size = lambda q: jnp.sum(problem.residual(q) ** 2)
        energy, error = problem.energy(q), size(q)

        def is_worse(carry):
            _, halvings, helps = carry
            return ~helps & (halvings < _HALVINGS)

        def halve(carry):
            factor, halvings, _ = carry
            trial = integrate(model, q, factor * step)
            helps = (problem.energy(trial) < energy) | (size(trial) < error)
            return jnp.where(helps, factor, factor / 2), halvings + 1, helps

        factor, _, helps = jax.lax.while_loop(is_worse, halve, (jnp.ones((), q.dtype), 0, jnp.zeros((), bool)))
        return integrate(model, q, jnp.where(helps, factor, 0) * step), helps

    def is_running(carry):
        _, iterations, is_done = carry
        return ~is_done & (iterations < max_iterations)

    def iterate(carry):
        q, iterations, _ = carry
        q, helps = shorten(q, problem.step(q))
        return q, iterations + 1, ~helps | problem.is_solved(q)

    start = problem.q0, jnp.zeros((), problem.q0.dtype), problem.is_solved(problem.q0)
    q, iterations, _ = jax.lax.while_loop(is_running, iterate, start)
    return difference(model, problem.q0, q), iterations
