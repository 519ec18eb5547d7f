"""The contract between `simulate` and solvers that know the robot they integrate."""

import abc

import diffrax
import equinox as eqx

from jaxdyn.model import Model
from jaxdyn.simulation.system import System


class AbstractSystemSolver(eqx.Module):
    """A solver of diffrax that reads the `System` it integrates.

    Derive such a solver from `diffrax.AbstractSolver` (or `AbstractWrapper`) and from this class.
    """

    @abc.abstractmethod
    def check_system(self, system: System) -> None:
        """Raises `ModelError` if the solver cannot integrate the system."""

    @abc.abstractmethod
    def with_loop_kind(self, kind: str) -> diffrax.AbstractSolver:
        """The solver whose loops over stages are of the kind "lax" or "bounded" (`equinox.internal.while_loop`)."""

    @abc.abstractmethod
    def on_manifold(self, model: Model) -> diffrax.AbstractSolver:
        """The solver whose configurations stay on the configuration manifold of the model."""
