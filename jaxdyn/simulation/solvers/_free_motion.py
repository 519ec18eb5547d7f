"""The systems that solvers without accelerations can integrate."""

import diffrax

from jaxdyn._errors import ModelError
from jaxdyn.dynamics import FreeMotion
from jaxdyn.simulation.system import System


def check_free_motion(solver: diffrax.AbstractSolver, system: System) -> None:
    """Raises `ModelError` unless the system is the free motion of its tree, by the package's own dynamics.

    For solvers that integrate Lagrange's equation of the tree and compute no accelerations.
    """
    name, motion = type(solver).__name__, system.motion
    other = "use a Runge-Kutta method such as diffrax.Tsit5()"
    if not isinstance(motion, FreeMotion):
        raise ModelError(f"{name} integrates the free motion of a tree, not {type(motion).__name__}; {other}")
    if motion.method is not None:
        raise ModelError(
            f"{name} computes no accelerations, so FreeMotion(method=...) would be ignored; omit the method or {other}"
        )
