"""A dynamic environment: a surface with mass, spring and damper that a robot touches, and force control on it."""

from jaxdyn.contact.environment._build import EnvironmentModel as EnvironmentModel
from jaxdyn.contact.environment._build import with_environment as with_environment
from jaxdyn.contact.environment._dynamics import Environment as Environment
from jaxdyn.contact.environment._dynamics import EnvironmentDynamics as EnvironmentDynamics
from jaxdyn.contact.environment._dynamics import EnvironmentImpact as EnvironmentImpact
from jaxdyn.contact.environment._dynamics import environment_dynamics as environment_dynamics
from jaxdyn.contact.environment._dynamics import environment_impact as environment_impact
from jaxdyn.contact.environment._force_control import EnvironmentForceControl as EnvironmentForceControl
from jaxdyn.contact.environment._force_control import PenetrationState as PenetrationState
from jaxdyn.contact.environment._massless import MasslessEnvironment as MasslessEnvironment
from jaxdyn.contact.environment._massless import SurfaceState as SurfaceState
from jaxdyn.contact.environment._motion import EnvironmentMotion as EnvironmentMotion
