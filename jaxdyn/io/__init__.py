"""Robots from files and back: URDF and MJCF, and any tree of the library saved and loaded without pickle."""

from jaxdyn.io._mjcf import load_mjcf as load_mjcf
from jaxdyn.io._mjcf import parse_mjcf as parse_mjcf
from jaxdyn.io._paths import resolve_mesh as resolve_mesh
from jaxdyn.io._save import load as load
from jaxdyn.io._save import save as save
from jaxdyn.io._urdf import load_urdf as load_urdf
from jaxdyn.io._urdf import parse_urdf as parse_urdf
from jaxdyn.io._urdf_write import write_urdf as write_urdf
from jaxdyn.io._xml import Bounds as Bounds
