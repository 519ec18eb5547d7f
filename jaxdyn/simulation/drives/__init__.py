"""Drives of a system: inputs for a motion, loads and losses of a trajectory, status and limits."""

from jaxdyn.simulation.drives._feedforward import AbstractNominal as AbstractNominal
from jaxdyn.simulation.drives._feedforward import InputFeedback as InputFeedback
from jaxdyn.simulation.drives._feedforward import MeasuredNominal as MeasuredNominal
from jaxdyn.simulation.drives._feedforward import StoredNominal as StoredNominal
from jaxdyn.simulation.drives._feedforward import store_nominal as store_nominal
from jaxdyn.simulation.drives._loads import DriveLoads as DriveLoads
from jaxdyn.simulation.drives._loads import drive_loads as drive_loads
from jaxdyn.simulation.drives._loads import power_flows as power_flows
from jaxdyn.simulation.drives._required_inputs import InputTable as InputTable
from jaxdyn.simulation.drives._required_inputs import RequiredInputs as RequiredInputs
from jaxdyn.simulation.drives._required_inputs import required_inputs as required_inputs
from jaxdyn.simulation.drives._required_inputs import tabulate_inputs as tabulate_inputs
from jaxdyn.simulation.drives._status import TransmissionStatus as TransmissionStatus
from jaxdyn.simulation.drives._status import transmission_status as transmission_status
from jaxdyn.simulation.drives._temperature import temperature_limit as temperature_limit
