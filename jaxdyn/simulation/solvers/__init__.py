"""The package's own solvers, and the adaptation of diffrax's solvers to configuration manifolds."""

from jaxdyn.simulation.solvers._canonical_momenta import CanonicalMomenta as CanonicalMomenta
from jaxdyn.simulation.solvers._contract import AbstractSystemSolver as AbstractSystemSolver
from jaxdyn.simulation.solvers._manifold import OnManifold as OnManifold
from jaxdyn.simulation.solvers._preparation import check_methods as check_methods
from jaxdyn.simulation.solvers._preparation import check_step_size as check_step_size
from jaxdyn.simulation.solvers._preparation import prepare_solver as prepare_solver
from jaxdyn.simulation.solvers._rosenbrock import Rosenbrock as Rosenbrock
from jaxdyn.simulation.solvers._semi_implicit import SemiImplicitEuler as SemiImplicitEuler
from jaxdyn.simulation.solvers._term import MotionTerm as MotionTerm
from jaxdyn.simulation.solvers._variational import Variational as Variational
from jaxdyn.simulation.solvers._wrapper import AbstractWrapper as AbstractWrapper
