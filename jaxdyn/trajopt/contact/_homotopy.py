"""Planning through contact: relaxed complementarity conditions, tightened by a sequence of solves."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float, Int
from jaxdyn.trajopt.contact._complementarity import ComplementarityRobot
from jaxdyn.trajopt.interior_point import solve
from jaxdyn.trajopt.problem import Bounds, PathConstraint, Problem, Solution
from jaxdyn.trajopt.transcription import AbstractTranscription, BackwardEuler

#: the relaxations of `solve_through_contact`
RELAXATIONS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


class _Signs(eqx.Module):
    """The quantities that are not negative, besides the forces, whose bounds are those of controls."""

    robot: ComplementarityRobot

    def __call__(self, t, x, u) -> Float[Array, " pairs"]:
        return self.robot.complementarity(t, x, u)[0]


class _Products(eqx.Module):
    """The complementarity products."""

    robot: ComplementarityRobot

    def __call__(self, t, x, u) -> Float[Array, " pairs"]:
        first, second = self.robot.complementarity(t, x, u)
        return first * second


def relax_contacts(problem: Problem, relaxation: ArrayLike) -> Problem:
    """The problem with complementarity conditions of contact whose products are at most `relaxation`.

    The dynamics are a `ComplementarityRobot`. Contact forces are bounded from below by zero; two path constraints are
    added: all quantities are not negative, and the product of each pair is at most `relaxation` (N m, or W for
    friction). The relaxation is a leaf. Raises `ModelError` for other dynamics.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
    from jaxdyn.trajopt import ComplementarityRobot, Problem, relax_contacts

    b = jd.ModelBuilder()
    ball = b.add_link("ball", "world", jd.joints.Prismatic((0, 0, 1)), jd.spatial.point_mass(2.0)).build()
    floor = Contact("floor", Gap("ball", Point(), "world", Plane()))
    robot = ComplementarityRobot(jd.System(ball, motion=ContactMotion(floor)))
    problem = relax_contacts(Problem(robot, 1.0, start=jnp.array([1.0, 0.0])), 1e-3)
    assert [c.name for c in problem.path] == ["signs of contact", "complementarity of contact"]
    ```
    """
    robot: Any = problem.dynamics
    if not isinstance(robot, ComplementarityRobot):
        raise ModelError(
            f"the dynamics of this problem are {type(robot).__name__}, whose contact forces are no free controls; give "
            "Problem(ComplementarityRobot(system), ...)"
        )
    zero, infinite = jnp.zeros((), problem.dtype), jnp.asarray(jnp.inf, problem.dtype)
    upper = jnp.asarray(relaxation, problem.dtype)
    path = (
        *problem.path,
        PathConstraint("signs of contact", _Signs(robot), zero, infinite),
        PathConstraint("complementarity of contact", _Products(robot), -infinite, upper),
    )
    least = jnp.where(jnp.arange(robot.nu) < robot.robot.nu, -jnp.inf, 0).astype(problem.dtype)
    b = problem.bounds
    bounds = Bounds(b.lower_state, b.upper_state, jnp.maximum(b.lower_control, least), b.upper_control, b.control_rate)
    return eqx.tree_at(lambda p: (p.path, p.bounds), problem, (path, bounds))


class ContactPlan(eqx.Module):
    """A plan through contact: the last solution, and the convergence of the homotopy; a row for each relaxation."""

    solution: Solution
    #: upper bounds of the complementarity products
    relaxations: Float[Array, "*batch solves"]
    #: the largest complementarity products
    products: Float[Array, "*batch solves"]
    costs: Float[Array, "*batch solves"]
    #: a `SolveStatus` each
    statuses: Int[Array, "*batch solves"]
    iterations: Int[Array, "*batch solves"]

    @property
    def complementarity(self) -> Float[Array, "*batch"]:
        """The largest complementarity product of the plan, N m, or W for friction."""
        return self.products[..., -1]


def solve_through_contact(
    problem: Problem,
    *,
    relaxations: Sequence[float | int] = RELAXATIONS,
    transcription: AbstractTranscription | None = None,
    intervals: int = 40,
    **options,
) -> ContactPlan:
    """Solves a problem in which contacts close, slide, stick and open where that is optimal, in no prescribed order.

    The complementarity conditions between gaps and forces are relaxed: their products are at most a relaxation, which
    falls to zero along `relaxations`. Each problem starts from the solution of the one before; all of them are one
    compiled program.

    Arguments:

    * `problem`: with a `ComplementarityRobot` as dynamics. Its guess need not make contact.
    * `relaxations`: upper bounds of the products, decreasing, N m, or W for friction.
    * `transcription`: by default `BackwardEuler()`, in which an impact is an impulse over one interval.
    * `intervals`, and the other options, are those of `solve`.

    Returns a `ContactPlan`, whose `solution` has a status and derivatives as that of `solve`. The optimum is a local
    one. Compare it with `simulate` under the planned efforts: the error of the plan is of first order in the interval.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.contact import Contact, ContactMotion, Gap, Plane, Point
    from jaxdyn.trajopt import ComplementarityRobot, Problem, partial, solve_through_contact

    b = jd.ModelBuilder(gravity=(0, 0, 0))
    b.add_link("finger", "world", jd.joints.Prismatic((1, 0, 0)), jd.spatial.point_mass(1.0))
    pair = b.add_link("block", "world", jd.joints.Prismatic((1, 0, 0)), jd.spatial.point_mass(1.0)).build()
    push = Contact("push", Gap("block", Point(), "finger", Plane((1, 0, 0))))
    robot = ComplementarityRobot(jd.System(pair, motion=ContactMotion(push)), actuated=("finger_joint",))
    start, goal = jnp.array([0.0, 0.1, 0.0, 0.0]), partial([0.5], [1])
    effort = lambda t, x, u: u[0] ** 2 + 1e-3 * u[1] ** 2
    plan = solve_through_contact(Problem(robot, 1.0, start=start, end=goal, running=effort), intervals=10)
    assert plan.solution.status == 0 and plan.complementarity < 2e-6
    assert abs(plan.solution.x[-1, 1] - 0.5) < 1e-6
    ```
    """
    transcription = BackwardEuler() if transcription is None else transcription
    rows, guess, solution = [], problem.guess, None
    for k, relaxation in enumerate(relaxations):
        relaxed = relax_contacts(problem.with_guess(guess), relaxation)
        barrier = options.pop("barrier", 0.1) if k == 0 else 0.1 * min(relaxation, 1.0)
        solution = solve(relaxed, transcription=transcription, intervals=intervals, barrier=barrier, **options)
        guess = jax.lax.stop_gradient(solution.guess)
        rows.append((solution.cost, largest_product(solution), solution.status, solution.iterations))
    if solution is None:
        raise ModelError("relaxations is empty; give at least one positive number")
    costs, products, statuses, iterations = (jnp.stack(column) for column in zip(*rows, strict=True))
    return ContactPlan(solution, jnp.asarray(relaxations, costs.dtype), products, costs, statuses, iterations)


def largest_product(solution: Solution) -> Float[Array, ""]:
    """The largest complementarity product at the evaluation points of a solution."""
    details = solution.details
    return _largest_product(details.program, details.loop.it.s, details.loop.it.m)


@eqx.filter_jit
def _largest_product(program: Any, s, m) -> Float[Array, ""]:
    robot, nx = program.problem.dynamics, program.problem.nx
    products = lambda p: _Products(robot)(p[0], p[1 : 1 + nx], p[1 + nx :])
    points = program.points(s, m)[0]
    return jnp.max(jnp.stack([jnp.max(jax.vmap(products)(p)) for p in points.values()]))
