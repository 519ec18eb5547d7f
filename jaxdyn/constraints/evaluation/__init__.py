"""Evaluation of a set of constraints at a state, and the linear solve (KKT) for constrained motion."""

from jaxdyn.constraints.evaluation._evaluate import ConstraintKinematics as ConstraintKinematics
from jaxdyn.constraints.evaluation._evaluate import acceleration_bias as acceleration_bias
from jaxdyn.constraints.evaluation._evaluate import as_constraints as as_constraints
from jaxdyn.constraints.evaluation._evaluate import constraint_kinematics as constraint_kinematics
from jaxdyn.constraints.evaluation._evaluate import constraint_rates as constraint_rates
from jaxdyn.constraints.evaluation._evaluate import constraint_residuals as constraint_residuals
from jaxdyn.constraints.evaluation._evaluate import constraint_wrenches as constraint_wrenches
from jaxdyn.constraints.evaluation._evaluate import holonomic_rows as holonomic_rows
from jaxdyn.constraints.evaluation._evaluate import kinematic_state as kinematic_state
from jaxdyn.constraints.evaluation._evaluate import linearise_constraints as linearise_constraints
from jaxdyn.constraints.evaluation._evaluate import moving_coordinates as moving_coordinates
from jaxdyn.constraints.evaluation._evaluate import optional_constraints as optional_constraints
from jaxdyn.constraints.evaluation._evaluate import row_slices as row_slices
from jaxdyn.constraints.evaluation._kkt import KKT as KKT
from jaxdyn.constraints.evaluation._solve import ConstrainedSolution as ConstrainedSolution
from jaxdyn.constraints.evaluation._solve import solve_constrained_motion as solve_constrained_motion
