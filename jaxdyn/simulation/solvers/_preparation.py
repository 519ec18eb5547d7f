"""Prepares the solver that a caller chose for a system and for a mode of differentiation."""

from typing import Any

import diffrax
from jax.typing import ArrayLike

from jaxdyn._errors import ModelError, check_instance
from jaxdyn.simulation.solvers._manifold import as_system_solver
from jaxdyn.simulation.system import System


def loop_kind(adjoint: diffrax.AbstractAdjoint) -> str | None:
    """The kind of loop over stages that an adjoint needs, as in diffrax; None if the solver's own choice is right."""
    kinds = ((diffrax.ForwardMode, "lax"), (diffrax.DirectAdjoint, "bounded"))
    return next((kind for cls, kind in kinds if isinstance(adjoint, cls)), None)


def check_methods(solver: Any, controller: Any, adjoint: Any) -> None:
    """Raises `ArgumentError` if a solver, a controller or an adjoint is not one of diffrax; None is the default."""
    for name, x, kind, example in (
        ("solver", solver, diffrax.AbstractSolver, "diffrax.Tsit5()"),
        ("controller", controller, diffrax.AbstractStepSizeController, "diffrax.PIDController(rtol=1e-6, atol=1e-6)"),
        ("adjoint", adjoint, diffrax.AbstractAdjoint, "diffrax.ForwardMode()"),
    ):
        if x is not None:
            check_instance(name, x, kind, f"pass for example {example}")


def check_step_size(
    solver: diffrax.AbstractSolver, dt: ArrayLike | None, controller: diffrax.AbstractStepSizeController | None
) -> None:
    """Raises `ModelError` if nothing determines the step size: no dt, no controller and no error estimate."""
    if not isinstance(solver, diffrax.AbstractAdaptiveSolver) and dt is None and controller is None:
        raise ModelError(f"{type(solver).__name__} has no error estimate to adapt its steps to; give a step dt=...")


def prepare_solver(
    solver: diffrax.AbstractSolver, system: System, adjoint: diffrax.AbstractAdjoint
) -> diffrax.AbstractSolver:
    """The solver with the loops that the adjoint needs, on the configuration manifold of the system's model.

    Raises `ModelError` if the solver cannot integrate the system.
    """
    as_system_solver(solver).check_system(system)
    kind = loop_kind(adjoint)
    if kind is not None:
        solver = as_system_solver(solver).with_loop_kind(kind)
    return as_system_solver(solver).on_manifold(system.model)
