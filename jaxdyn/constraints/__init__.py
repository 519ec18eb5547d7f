"""Constraints by Lagrange multipliers: closed chains, surfaces, prescribed and rolling motion.

`constrained_dynamics` is the entry; `ConstrainedMotion` takes constraints into a simulation.
"""

from jaxdyn.constraints._assemble import Assembly as Assembly
from jaxdyn.constraints._assemble import AssemblyStatus as AssemblyStatus
from jaxdyn.constraints._assemble import assemble as assemble
from jaxdyn.constraints._closures import CylindricalClosure as CylindricalClosure
from jaxdyn.constraints._closures import Distance as Distance
from jaxdyn.constraints._closures import PlanarClosure as PlanarClosure
from jaxdyn.constraints._closures import PointClosure as PointClosure
from jaxdyn.constraints._closures import PrismaticClosure as PrismaticClosure
from jaxdyn.constraints._closures import RevoluteClosure as RevoluteClosure
from jaxdyn.constraints._closures import WeldClosure as WeldClosure
from jaxdyn.constraints._contract import AbstractConstraint as AbstractConstraint
from jaxdyn.constraints._contract import AbstractHolonomic as AbstractHolonomic
from jaxdyn.constraints._contract import AbstractNonholonomic as AbstractNonholonomic
from jaxdyn.constraints._contract import Moving as Moving
from jaxdyn.constraints._contract import Placed as Placed
from jaxdyn.constraints._coordinates import Holonomic as Holonomic
from jaxdyn.constraints._coordinates import JointCoupling as JointCoupling
from jaxdyn.constraints._coordinates import OnSurface as OnSurface
from jaxdyn.constraints._coordinates import Pfaffian as Pfaffian
from jaxdyn.constraints._coordinates import PrescribedCoordinate as PrescribedCoordinate
from jaxdyn.constraints._coordinates import PrescribedFrame as PrescribedFrame
from jaxdyn.constraints._described import described_constraints as described_constraints
from jaxdyn.constraints._dynamics import ConstrainedDynamics as ConstrainedDynamics
from jaxdyn.constraints._dynamics import ConstraintStatus as ConstraintStatus
from jaxdyn.constraints._dynamics import Impulse as Impulse
from jaxdyn.constraints._dynamics import allowed_forces as allowed_forces
from jaxdyn.constraints._dynamics import constrained_dynamics as constrained_dynamics
from jaxdyn.constraints._dynamics import constrained_inverse_dynamics as constrained_inverse_dynamics
from jaxdyn.constraints._dynamics import impulse as impulse
from jaxdyn.constraints._dynamics import mobility as mobility
from jaxdyn.constraints._ends import End as End
from jaxdyn.constraints._kkt import KKT as KKT
from jaxdyn.constraints._motion import AbstractStabilisation as AbstractStabilisation
from jaxdyn.constraints._motion import Baumgarte as Baumgarte
from jaxdyn.constraints._motion import ConstrainedMotion as ConstrainedMotion
from jaxdyn.constraints._motion import GearGuptaLeimkuhler as GearGuptaLeimkuhler
from jaxdyn.constraints._motion import Projection as Projection
from jaxdyn.constraints._reduced import ReducedDynamics as ReducedDynamics
from jaxdyn.constraints._reduced import constrained_task_space_dynamics as constrained_task_space_dynamics
from jaxdyn.constraints._reduced import reduced_dynamics as reduced_dynamics
from jaxdyn.constraints._rolling import BallOnPlane as BallOnPlane
from jaxdyn.constraints._rolling import DiscOnPlane as DiscOnPlane
from jaxdyn.constraints._rolling import KnifeEdge as KnifeEdge
from jaxdyn.constraints._rolling import RollingBall as RollingBall
from jaxdyn.constraints._rolling import RollingDisc as RollingDisc
from jaxdyn.constraints._systems import carried_state as carried_state
from jaxdyn.constraints._systems import common_load as common_load
from jaxdyn.constraints._systems import gripping_load as gripping_load
from jaxdyn.constraints._systems import on_surface as on_surface
