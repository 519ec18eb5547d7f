"""Iterative LQR (differential dynamic programming) and single shooting, which simulate under held controls."""

from jaxdyn.trajopt.ilqr._algorithm import ILQRProgress as ILQRProgress
from jaxdyn.trajopt.ilqr._algorithm import Options as Options
from jaxdyn.trajopt.ilqr._sensitivity import optimise as optimise
from jaxdyn.trajopt.ilqr._single_shooting import ShootingProgress as ShootingProgress
from jaxdyn.trajopt.ilqr._single_shooting import single_shooting as single_shooting
from jaxdyn.trajopt.ilqr._solve import FeedbackGains as FeedbackGains
from jaxdyn.trajopt.ilqr._solve import check_fixed as check_fixed
from jaxdyn.trajopt.ilqr._solve import guess as guess
from jaxdyn.trajopt.ilqr._solve import ilqr as ilqr
from jaxdyn.trajopt.ilqr._stage import Multipliers as Multipliers
from jaxdyn.trajopt.ilqr._stage import end_rows as end_rows
from jaxdyn.trajopt.ilqr._stage import row_limits as row_limits
from jaxdyn.trajopt.ilqr._tracking import TrackingInputs as TrackingInputs
from jaxdyn.trajopt.ilqr._tracking import tracking_law as tracking_law
