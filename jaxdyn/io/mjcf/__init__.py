"""Reading of MJCF, which MuJoCo's own compiler resolves."""

from jaxdyn.io.mjcf._read import load_mjcf as load_mjcf
from jaxdyn.io.mjcf._read import parse_mjcf as parse_mjcf
