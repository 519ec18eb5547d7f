"""Reading and writing of whole files, paths of meshes, and archives of arrays and XML under limits of size."""

from jaxdyn.io.files._npy import read_members as read_members
from jaxdyn.io.files._npy import read_npy as read_npy
from jaxdyn.io.files._numpy_leaves import with_numpy_leaves as with_numpy_leaves
from jaxdyn.io.files._paths import as_paths as as_paths
from jaxdyn.io.files._paths import read_bytes as read_bytes
from jaxdyn.io.files._paths import resolve_mesh as resolve_mesh
from jaxdyn.io.files._write import write_bytes as write_bytes
from jaxdyn.io.files._xml import LARGEST as LARGEST
from jaxdyn.io.files._xml import Element as Element
from jaxdyn.io.files._xml import ParsingLimits as ParsingLimits
from jaxdyn.io.files._xml import fail as fail
from jaxdyn.io.files._xml import parse_number as parse_number
from jaxdyn.io.files._xml import parse_xml as parse_xml
from jaxdyn.io.files._xml import read_number as read_number
from jaxdyn.io.files._xml import read_vector as read_vector
from jaxdyn.io.files._xml import require_attribute as require_attribute
