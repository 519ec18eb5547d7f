"""What solvers around other solvers have in common."""

import diffrax
import equinox as eqx


class AbstractWrapper(diffrax.AbstractWrappedSolver):
    """A solver around another one, whose order and way of solving equations it has."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    @property
    def term_structure(self):
        return self.solver.term_structure

    @property
    def scan_kind(self):
        """The kind of loop over stages, which an adjoint of diffrax may have chosen."""
        return getattr(self.solver, "scan_kind", None)

    @property
    def root_finder(self):
        """What an implicit solver solves its stages with."""
        return getattr(self.solver, "root_finder")  # noqa: B009

    def order(self, terms):
        return self.solver.order(terms)

    def strong_order(self, terms):
        return None

    def error_order(self, terms):
        return self.solver.error_order(terms)
