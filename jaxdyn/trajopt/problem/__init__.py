"""Optimal control problems: dynamics, boundary conditions, bounds, path constraints, guesses and solutions."""

from jaxdyn.trajopt.problem._boundary import Boundary as Boundary
from jaxdyn.trajopt.problem._boundary import partial as partial
from jaxdyn.trajopt.problem._compiling import run_compiled as run_compiled
from jaxdyn.trajopt.problem._constrained_robot import ConstrainedRobot as ConstrainedRobot
from jaxdyn.trajopt.problem._dynamics import AbstractConstrainedDynamics as AbstractConstrainedDynamics
from jaxdyn.trajopt.problem._dynamics import AbstractDynamics as AbstractDynamics
from jaxdyn.trajopt.problem._dynamics import AbstractImplicit as AbstractImplicit
from jaxdyn.trajopt.problem._dynamics import AbstractLimitedDynamics as AbstractLimitedDynamics
from jaxdyn.trajopt.problem._dynamics import Constrained as Constrained
from jaxdyn.trajopt.problem._dynamics import DynamicsLimits as DynamicsLimits
from jaxdyn.trajopt.problem._dynamics import VectorField as VectorField
from jaxdyn.trajopt.problem._implicit import differentiate_implicitly as differentiate_implicitly
from jaxdyn.trajopt.problem._problem import Bounds as Bounds
from jaxdyn.trajopt.problem._problem import Guess as Guess
from jaxdyn.trajopt.problem._problem import PathConstraint as PathConstraint
from jaxdyn.trajopt.problem._problem import Problem as Problem
from jaxdyn.trajopt.problem._robot import Robot as Robot
from jaxdyn.trajopt.problem._signatures import CouplingFunction as CouplingFunction
from jaxdyn.trajopt.problem._signatures import FinalFunction as FinalFunction
from jaxdyn.trajopt.problem._signatures import PointFunction as PointFunction
from jaxdyn.trajopt.problem._signatures import StateFunction as StateFunction
from jaxdyn.trajopt.problem._solution import Residual as Residual
from jaxdyn.trajopt.problem._solution import Solution as Solution
from jaxdyn.trajopt.problem._solution import SolveStatus as SolveStatus
from jaxdyn.trajopt.problem._solution import Violation as Violation
from jaxdyn.trajopt.problem._solution import largest_residual as largest_residual
