"""Inverse and forward dynamics of trees, their derivatives, and quantities derived from the equations of motion."""

from jaxdyn.dynamics._aba import aba as aba
from jaxdyn.dynamics._aba_derivatives import ForwardDynamicsDerivatives as ForwardDynamicsDerivatives
from jaxdyn.dynamics._aba_derivatives import forward_dynamics_derivatives as forward_dynamics_derivatives
from jaxdyn.dynamics._coriolis import christoffel_symbols as christoffel_symbols
from jaxdyn.dynamics._coriolis import coriolis_matrix as coriolis_matrix
from jaxdyn.dynamics._crba import crba_solve as crba_solve
from jaxdyn.dynamics._crba import mass_matrix as mass_matrix
from jaxdyn.dynamics._crba import mass_matrix_of_bodies as mass_matrix_of_bodies
from jaxdyn.dynamics._energy import kinetic_energy as kinetic_energy
from jaxdyn.dynamics._energy import potential_energy as potential_energy
from jaxdyn.dynamics._forward_dynamics import forward_dynamics as forward_dynamics
from jaxdyn.dynamics._free_motion import FreeMotion as FreeMotion
from jaxdyn.dynamics._modes import Modes as Modes
from jaxdyn.dynamics._modes import modes as modes
from jaxdyn.dynamics._modes import stiffness_matrix as stiffness_matrix
from jaxdyn.dynamics._momentum import centroidal_momentum_matrix as centroidal_momentum_matrix
from jaxdyn.dynamics._momentum import (
    centroidal_momentum_matrix_derivative as centroidal_momentum_matrix_derivative,
)
from jaxdyn.dynamics._momentum import momentum as momentum
from jaxdyn.dynamics._passive import passive_forces as passive_forces
from jaxdyn.dynamics._reactions import JointReactions as JointReactions
from jaxdyn.dynamics._reactions import joint_reactions as joint_reactions
from jaxdyn.dynamics._reactions import work as work
from jaxdyn.dynamics._regressor import inertial_parameters as inertial_parameters
from jaxdyn.dynamics._regressor import inertial_regressor as inertial_regressor
from jaxdyn.dynamics._rnea import bias_forces as bias_forces
from jaxdyn.dynamics._rnea import gravity_forces as gravity_forces
from jaxdyn.dynamics._rnea import rnea as rnea
from jaxdyn.dynamics._rnea_derivatives import InverseDynamicsDerivatives as InverseDynamicsDerivatives
from jaxdyn.dynamics._rnea_derivatives import rnea_derivatives as rnea_derivatives
from jaxdyn.dynamics._subtree_sums import equations_of_motion as equations_of_motion
from jaxdyn.dynamics._task_space import TaskSpaceDynamics as TaskSpaceDynamics
from jaxdyn.dynamics._task_space import task_space_dynamics as task_space_dynamics
from jaxdyn.dynamics.contract import AbstractActuator as AbstractActuator
from jaxdyn.dynamics.contract import AbstractController as AbstractController
from jaxdyn.dynamics.contract import AbstractMeasuredActuator as AbstractMeasuredActuator
from jaxdyn.dynamics.contract import AbstractModalMotion as AbstractModalMotion
from jaxdyn.dynamics.contract import AbstractModalPart as AbstractModalPart
from jaxdyn.dynamics.contract import AbstractMotion as AbstractMotion
from jaxdyn.dynamics.contract import AbstractPart as AbstractPart
from jaxdyn.dynamics.contract import AbstractRatedActuator as AbstractRatedActuator
from jaxdyn.dynamics.contract import AbstractSampledPart as AbstractSampledPart
from jaxdyn.dynamics.contract import AbstractSwitchingPart as AbstractSwitchingPart
from jaxdyn.dynamics.contract import Action as Action
from jaxdyn.dynamics.contract import Command as Command
from jaxdyn.dynamics.contract import PartSwitch as PartSwitch
from jaxdyn.dynamics.contract import Switch as Switch
from jaxdyn.dynamics.contract import SwitchFailure as SwitchFailure
