"""Reading and writing of URDF."""

from jaxdyn.io.urdf._read import load_urdf as load_urdf
from jaxdyn.io.urdf._read import parse_urdf as parse_urdf
from jaxdyn.io.urdf._unsupported import has_limits_or_friction as has_limits_or_friction
from jaxdyn.io.urdf._unsupported import unsupported_features as unsupported_features
from jaxdyn.io.urdf._write import write_urdf as write_urdf
