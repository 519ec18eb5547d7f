"""Parameters of a fit: their selection by path, their vector, charts and bounds, base parameters, and consistency."""

from jaxdyn.identification.parameters._base_parameters import Grouping as Grouping
from jaxdyn.identification.parameters._base_parameters import grouping as grouping
from jaxdyn.identification.parameters._bodies import as_bodies as as_bodies
from jaxdyn.identification.parameters._charts import Chart as Chart
from jaxdyn.identification.parameters._charts import log_cholesky_factor as log_cholesky_factor
from jaxdyn.identification.parameters._charts import make_chart as make_chart
from jaxdyn.identification.parameters._feasibility import check_bodies as check_bodies
from jaxdyn.identification.parameters._feasibility import feasible_point as feasible_point
from jaxdyn.identification.parameters._link_checks import LinkCheck as LinkCheck
from jaxdyn.identification.parameters._link_checks import link_checks as link_checks
from jaxdyn.identification.parameters._parameters import ParameterBounds as ParameterBounds
from jaxdyn.identification.parameters._parameters import Parameters as Parameters
from jaxdyn.identification.parameters._parameters import collect as collect
from jaxdyn.identification.parameters._pseudo_inertia import pseudo_inertia as pseudo_inertia
from jaxdyn.identification.parameters._pseudo_inertia import pseudo_inertia_basis as pseudo_inertia_basis
from jaxdyn.identification.parameters._selection import Selection as Selection
from jaxdyn.identification.parameters._selection import dof_labels as dof_labels
from jaxdyn.identification.parameters._selection import select as select
from jaxdyn.identification.parameters._slots import AbstractSlot as AbstractSlot
