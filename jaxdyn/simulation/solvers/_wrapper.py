"""The common part of solvers that wrap another solver."""

import diffrax
import equinox as eqx


class AbstractWrapper(diffrax.AbstractWrappedSolver):
    """A solver that wraps another one, with the order and the root finder of the wrapped solver."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    @property
    def term_structure(self):
        return self.solver.term_structure

    @property
    def scan_kind(self):
        """The kind of loop over stages, which diffrax's adjoints may set."""
        return getattr(self.solver, "scan_kind", None)

    @property
    def root_finder(self):
        """The root finder of an implicit solver."""
        return getattr(self.solver, "root_finder")  # noqa: B009

    def order(self, terms):
        return self.solver.order(terms)

    def strong_order(self, terms):
        return None

    def error_order(self, terms):
        return self.solver.error_order(terms)
