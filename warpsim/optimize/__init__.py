"""Optimisers over a `Problem`: a vector within bounds and the loss it gives."""

from warpsim.optimize.adam import Adam
from warpsim.optimize.cem import CEM
from warpsim.optimize.control_problem import ControlProblem, quadratic_cost
from warpsim.optimize.identification import Identification
from warpsim.optimize.ilqr import ILQR, TrajectoryPlan
from warpsim.optimize.lbfgs import LBFGS
from warpsim.optimize.levenberg_marquardt import LevenbergMarquardt
from warpsim.optimize.minimise import minimise
from warpsim.optimize.mpc import ClosedLoop, RecedingHorizon, Solve, run_closed_loop
from warpsim.optimize.multi_start import StartsReport, multi_start
from warpsim.optimize.problem import FunctionProblem, Problem
from warpsim.optimize.result import Result, Row, Stopped
from warpsim.optimize.rollout_problem import RolloutProblem
from warpsim.optimize.search import Progress, Stopping
from warpsim.optimize.smoothed_problem import SmoothedProblem
from warpsim.optimize.variables import Variable, Variables

__all__ = [
    "CEM",
    "ILQR",
    "LBFGS",
    "Adam",
    "ClosedLoop",
    "ControlProblem",
    "FunctionProblem",
    "Identification",
    "LevenbergMarquardt",
    "Problem",
    "Progress",
    "RecedingHorizon",
    "Result",
    "RolloutProblem",
    "Row",
    "SmoothedProblem",
    "Solve",
    "StartsReport",
    "Stopped",
    "Stopping",
    "TrajectoryPlan",
    "Variable",
    "Variables",
    "minimise",
    "multi_start",
    "quadratic_cost",
    "run_closed_loop",
]
