"""Methods that call a solver repeatedly: mesh refinement, multi-start, model-predictive control; tuning."""

from jaxdyn.trajopt.drivers._mesh_refinement import Refinement as Refinement
from jaxdyn.trajopt.drivers._mesh_refinement import interval_errors as interval_errors
from jaxdyn.trajopt.drivers._mesh_refinement import refined_mesh as refined_mesh
from jaxdyn.trajopt.drivers._mesh_refinement import solve_refined as solve_refined
from jaxdyn.trajopt.drivers._mpc import AbstractReplanner as AbstractReplanner
from jaxdyn.trajopt.drivers._mpc import ModelPredictive as ModelPredictive
from jaxdyn.trajopt.drivers._mpc import Planned as Planned
from jaxdyn.trajopt.drivers._mpc import WarmILQR as WarmILQR
from jaxdyn.trajopt.drivers._mpc import WarmInteriorPoint as WarmInteriorPoint
from jaxdyn.trajopt.drivers._multi_start import MultiStart as MultiStart
from jaxdyn.trajopt.drivers._multi_start import draw_guesses as draw_guesses
from jaxdyn.trajopt.drivers._multi_start import multi_start as multi_start
from jaxdyn.trajopt.drivers._predictive_inputs import PredictiveInputs as PredictiveInputs
from jaxdyn.trajopt.drivers._tune import Tuned as Tuned
from jaxdyn.trajopt.drivers._tune import TuningStatus as TuningStatus
from jaxdyn.trajopt.drivers._tune import tune as tune
