"""Equations of motion of trees: inverse and forward dynamics, their derivatives, and what follows from them."""

from jaxdyn.dynamics._coriolis import christoffel_symbols as christoffel_symbols
from jaxdyn.dynamics._coriolis import coriolis_matrix as coriolis_matrix
from jaxdyn.dynamics._derivatives import ForwardDynamicsDerivatives as ForwardDynamicsDerivatives
from jaxdyn.dynamics._derivatives import InverseDynamicsDerivatives as InverseDynamicsDerivatives
from jaxdyn.dynamics._derivatives import forward_dynamics_derivatives as forward_dynamics_derivatives
from jaxdyn.dynamics._derivatives import rnea_derivatives as rnea_derivatives
from jaxdyn.dynamics._energy import kinetic_energy as kinetic_energy
from jaxdyn.dynamics._energy import potential_energy as potential_energy
from jaxdyn.dynamics._forward import aba as aba
from jaxdyn.dynamics._forward import crba_solve as crba_solve
from jaxdyn.dynamics._forward import forward_dynamics as forward_dynamics
from jaxdyn.dynamics._forward import mass_matrix as mass_matrix
from jaxdyn.dynamics._inverse import bias_forces as bias_forces
from jaxdyn.dynamics._inverse import gravity_forces as gravity_forces
from jaxdyn.dynamics._inverse import rnea as rnea
from jaxdyn.dynamics._momentum import centroidal_momentum_matrix as centroidal_momentum_matrix
from jaxdyn.dynamics._momentum import (
    centroidal_momentum_matrix_derivative as centroidal_momentum_matrix_derivative,
)
from jaxdyn.dynamics._momentum import momentum as momentum
from jaxdyn.dynamics._part import AbstractMotion as AbstractMotion
from jaxdyn.dynamics._part import AbstractPart as AbstractPart
from jaxdyn.dynamics._part import AbstractSampledPart as AbstractSampledPart
from jaxdyn.dynamics._part import Action as Action
from jaxdyn.dynamics._part import FreeMotion as FreeMotion
from jaxdyn.dynamics._passive import passive_forces as passive_forces
from jaxdyn.dynamics._reactions import JointReactions as JointReactions
from jaxdyn.dynamics._reactions import joint_reactions as joint_reactions
from jaxdyn.dynamics._reactions import work as work
from jaxdyn.dynamics._regressor import inertial_parameters as inertial_parameters
from jaxdyn.dynamics._regressor import inertial_regressor as inertial_regressor
from jaxdyn.dynamics._task_space import TaskSpaceDynamics as TaskSpaceDynamics
from jaxdyn.dynamics._task_space import task_space_dynamics as task_space_dynamics
