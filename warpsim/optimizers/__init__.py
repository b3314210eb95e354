"""Optimizers over a `Problem`: a vector within bounds and the loss it gives."""

from warpsim.optimizers.adam import Adam
from warpsim.optimizers.cem import CEM
from warpsim.optimizers.control_problem import ControlProblem, quadratic_cost
from warpsim.optimizers.identification import Identification
from warpsim.optimizers.ilqr import ILQR, TrajectoryPlan
from warpsim.optimizers.lbfgs import LBFGS
from warpsim.optimizers.levenberg_marquardt import LevenbergMarquardt
from warpsim.optimizers.minimize import minimize
from warpsim.optimizers.mpc import ClosedLoop, RecedingHorizon, Solve, run_closed_loop
from warpsim.optimizers.multi_start import StartsReport, multi_start
from warpsim.optimizers.polyak import Polyak
from warpsim.optimizers.problem import FunctionProblem, Problem
from warpsim.optimizers.result import HistoryEntry, Result, Stopped
from warpsim.optimizers.rollout_problem import RolloutProblem
from warpsim.optimizers.search import Progress, Stopping
from warpsim.optimizers.smoothed_problem import SmoothedProblem
from warpsim.optimizers.variables import Variable, Variables

__all__ = [
    "CEM",
    "ILQR",
    "LBFGS",
    "Adam",
    "ClosedLoop",
    "ControlProblem",
    "FunctionProblem",
    "HistoryEntry",
    "Identification",
    "LevenbergMarquardt",
    "Polyak",
    "Problem",
    "Progress",
    "RecedingHorizon",
    "Result",
    "RolloutProblem",
    "SmoothedProblem",
    "Solve",
    "StartsReport",
    "Stopped",
    "Stopping",
    "TrajectoryPlan",
    "Variable",
    "Variables",
    "minimize",
    "multi_start",
    "quadratic_cost",
    "run_closed_loop",
]
