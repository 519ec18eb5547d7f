"""Constraints by Lagrange multipliers: closed loops, surfaces, prescribed motion and rolling.

`constrained_dynamics` computes accelerations and multipliers; `ConstrainedMotion` simulates constrained robots.
"""

from jaxdyn.constraints._assemble import Assembly as Assembly
from jaxdyn.constraints._assemble import AssemblyStatus as AssemblyStatus
from jaxdyn.constraints._assemble import assemble as assemble
from jaxdyn.constraints._dynamics import ConstrainedDynamics as ConstrainedDynamics
from jaxdyn.constraints._dynamics import ConstraintStatus as ConstraintStatus
from jaxdyn.constraints._dynamics import Impulse as Impulse
from jaxdyn.constraints._dynamics import allowed_forces as allowed_forces
from jaxdyn.constraints._dynamics import constrained_dynamics as constrained_dynamics
from jaxdyn.constraints._dynamics import constrained_inverse_dynamics as constrained_inverse_dynamics
from jaxdyn.constraints._dynamics import impulse as impulse
from jaxdyn.constraints._dynamics import mobility as mobility
from jaxdyn.constraints._motion import AbstractStabilisation as AbstractStabilisation
from jaxdyn.constraints._motion import Baumgarte as Baumgarte
from jaxdyn.constraints._motion import ConstrainedMotion as ConstrainedMotion
from jaxdyn.constraints._motion import GearGuptaLeimkuhler as GearGuptaLeimkuhler
from jaxdyn.constraints._motion import Projection as Projection
from jaxdyn.constraints._reduced import ReducedDynamics as ReducedDynamics
from jaxdyn.constraints._reduced import constrained_task_space_dynamics as constrained_task_space_dynamics
from jaxdyn.constraints._reduced import reduced_dynamics as reduced_dynamics
from jaxdyn.constraints._systems import carried_state as carried_state
from jaxdyn.constraints._systems import common_load as common_load
from jaxdyn.constraints._systems import gripping_load as gripping_load
from jaxdyn.constraints._systems import on_surface as on_surface
from jaxdyn.constraints.contract import AbstractConstraint as AbstractConstraint
from jaxdyn.constraints.contract import AbstractHolonomic as AbstractHolonomic
from jaxdyn.constraints.contract import AbstractNonholonomic as AbstractNonholonomic
from jaxdyn.constraints.contract import Configuration as Configuration
from jaxdyn.constraints.contract import KinematicState as KinematicState
from jaxdyn.constraints.evaluation import KKT as KKT
from jaxdyn.constraints.types import BallOnPlane as BallOnPlane
from jaxdyn.constraints.types import CylindricalClosure as CylindricalClosure
from jaxdyn.constraints.types import DiscOnPlane as DiscOnPlane
from jaxdyn.constraints.types import Distance as Distance
from jaxdyn.constraints.types import End as End
from jaxdyn.constraints.types import Holonomic as Holonomic
from jaxdyn.constraints.types import JointCoupling as JointCoupling
from jaxdyn.constraints.types import KnifeEdge as KnifeEdge
from jaxdyn.constraints.types import LinearCoupling as LinearCoupling
from jaxdyn.constraints.types import OnSurface as OnSurface
from jaxdyn.constraints.types import Pfaffian as Pfaffian
from jaxdyn.constraints.types import PlanarClosure as PlanarClosure
from jaxdyn.constraints.types import PointClosure as PointClosure
from jaxdyn.constraints.types import PrescribedCoordinate as PrescribedCoordinate
from jaxdyn.constraints.types import PrescribedFrame as PrescribedFrame
from jaxdyn.constraints.types import PrismaticClosure as PrismaticClosure
from jaxdyn.constraints.types import RevoluteClosure as RevoluteClosure
from jaxdyn.constraints.types import RollingBall as RollingBall
from jaxdyn.constraints.types import RollingDisc as RollingDisc
from jaxdyn.constraints.types import WeldClosure as WeldClosure
from jaxdyn.constraints.types import described_constraints as described_constraints
