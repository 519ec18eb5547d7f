"""Algebra of vectors, matrices and six-vectors as tuples of components, the form in which kernels compute."""

from jaxdyn.recursion.components._six_vectors import add6 as add6
from jaxdyn.recursion.components._six_vectors import cross_force as cross_force
from jaxdyn.recursion.components._six_vectors import cross_motion as cross_motion
from jaxdyn.recursion.components._six_vectors import dot6 as dot6
from jaxdyn.recursion.components._six_vectors import force_to_local as force_to_local
from jaxdyn.recursion.components._six_vectors import force_to_world as force_to_world
from jaxdyn.recursion.components._six_vectors import motion_to_local as motion_to_local
from jaxdyn.recursion.components._six_vectors import motion_to_world as motion_to_world
from jaxdyn.recursion.components._six_vectors import scale6 as scale6
from jaxdyn.recursion.components._vectors import add as add
from jaxdyn.recursion.components._vectors import cross as cross
from jaxdyn.recursion.components._vectors import dot as dot
from jaxdyn.recursion.components._vectors import matmul as matmul
from jaxdyn.recursion.components._vectors import matrix as matrix
from jaxdyn.recursion.components._vectors import neg as neg
from jaxdyn.recursion.components._vectors import rotate as rotate
from jaxdyn.recursion.components._vectors import rotate_back as rotate_back
from jaxdyn.recursion.components._vectors import scale as scale
from jaxdyn.recursion.components._vectors import skew as skew
from jaxdyn.recursion.components._vectors import sub as sub
from jaxdyn.recursion.components._vectors import sym_conjugate as sym_conjugate
from jaxdyn.recursion.components._vectors import sym_rotate as sym_rotate
from jaxdyn.recursion.components._vectors import transpose as transpose
from jaxdyn.recursion.components._vectors import vector as vector
