"""The types of constraints: closures, couplings, prescribed motion, surfaces, rolling."""

from jaxdyn.constraints.types._closures import CylindricalClosure as CylindricalClosure
from jaxdyn.constraints.types._closures import Distance as Distance
from jaxdyn.constraints.types._closures import PlanarClosure as PlanarClosure
from jaxdyn.constraints.types._closures import PointClosure as PointClosure
from jaxdyn.constraints.types._closures import PrismaticClosure as PrismaticClosure
from jaxdyn.constraints.types._closures import RevoluteClosure as RevoluteClosure
from jaxdyn.constraints.types._closures import WeldClosure as WeldClosure
from jaxdyn.constraints.types._coordinates import Holonomic as Holonomic
from jaxdyn.constraints.types._coordinates import JointCoupling as JointCoupling
from jaxdyn.constraints.types._coordinates import LinearCoupling as LinearCoupling
from jaxdyn.constraints.types._coordinates import OnSurface as OnSurface
from jaxdyn.constraints.types._coordinates import Pfaffian as Pfaffian
from jaxdyn.constraints.types._coordinates import PrescribedCoordinate as PrescribedCoordinate
from jaxdyn.constraints.types._coordinates import PrescribedFrame as PrescribedFrame
from jaxdyn.constraints.types._described import described_constraints as described_constraints
from jaxdyn.constraints.types._ends import End as End
from jaxdyn.constraints.types._ends import as_end as as_end
from jaxdyn.constraints.types._ends import relative_pose as relative_pose
from jaxdyn.constraints.types._ends import tilt as tilt
from jaxdyn.constraints.types._rolling import BallOnPlane as BallOnPlane
from jaxdyn.constraints.types._rolling import DiscOnPlane as DiscOnPlane
from jaxdyn.constraints.types._rolling import KnifeEdge as KnifeEdge
from jaxdyn.constraints.types._rolling import RollingBall as RollingBall
from jaxdyn.constraints.types._rolling import RollingDisc as RollingDisc
