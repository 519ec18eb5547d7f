"""Files: URDF and MJCF robots, and saving and loading of any pytree of the library without pickle."""

from jaxdyn.io.files import ParsingLimits as ParsingLimits
from jaxdyn.io.files import resolve_mesh as resolve_mesh
from jaxdyn.io.mjcf import load_mjcf as load_mjcf
from jaxdyn.io.mjcf import parse_mjcf as parse_mjcf
from jaxdyn.io.saving import load as load
from jaxdyn.io.saving import save as save
from jaxdyn.io.urdf import load_urdf as load_urdf
from jaxdyn.io.urdf import parse_urdf as parse_urdf
from jaxdyn.io.urdf import write_urdf as write_urdf
