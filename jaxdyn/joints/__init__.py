"""The joint contract (`AbstractJoint`) and the built-in joints, one file each."""

from jaxdyn.joints._bushing import Bushing as Bushing
from jaxdyn.joints._custom import Custom as Custom
from jaxdyn.joints._cylindrical import Cylindrical as Cylindrical
from jaxdyn.joints._fixed import Fixed as Fixed
from jaxdyn.joints._free import Free as Free
from jaxdyn.joints._helical import Helical as Helical
from jaxdyn.joints._joint import AbstractJoint as AbstractJoint
from jaxdyn.joints._joint import AbstractVectorJoint as AbstractVectorJoint
from jaxdyn.joints._parameters import parameter_shapes as parameter_shapes
from jaxdyn.joints._planar import Planar as Planar
from jaxdyn.joints._prismatic import Prismatic as Prismatic
from jaxdyn.joints._revolute import Continuous as Continuous
from jaxdyn.joints._revolute import Revolute as Revolute
from jaxdyn.joints._revolute import has_vector_rate as has_vector_rate
from jaxdyn.joints._spherical import Spherical as Spherical
from jaxdyn.joints._spherical import SphericalZYX as SphericalZYX
from jaxdyn.joints._universal import Universal as Universal
