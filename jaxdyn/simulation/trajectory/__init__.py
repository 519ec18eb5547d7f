"""Trajectories: the results of simulations, quantities derived from them, and their export as tables."""

from jaxdyn.simulation.trajectory._export import to_csv as to_csv
from jaxdyn.simulation.trajectory._export import to_npz as to_npz
from jaxdyn.simulation.trajectory._export import to_numpy as to_numpy
from jaxdyn.simulation.trajectory._export import to_parquet as to_parquet
from jaxdyn.simulation.trajectory._names import coordinate_names as coordinate_names
from jaxdyn.simulation.trajectory._names import effort_names as effort_names
from jaxdyn.simulation.trajectory._names import velocity_names as velocity_names
from jaxdyn.simulation.trajectory._sensitivity_status import SensitivityStatus as SensitivityStatus
from jaxdyn.simulation.trajectory._sensitivity_status import sensitivity_status as sensitivity_status
from jaxdyn.simulation.trajectory._status import SimulationStatus as SimulationStatus
from jaxdyn.simulation.trajectory._trajectory import Batched as Batched
from jaxdyn.simulation.trajectory._trajectory import EventRecord as EventRecord
from jaxdyn.simulation.trajectory._trajectory import Interpolant as Interpolant
from jaxdyn.simulation.trajectory._trajectory import PhaseRecord as PhaseRecord
from jaxdyn.simulation.trajectory._trajectory import Trajectory as Trajectory
from jaxdyn.simulation.trajectory._trajectory import with_system as with_system
