"""Optimisers over a `Problem`: a vector within bounds and the loss it gives."""

from warpsim.optimize.adam import Adam
from warpsim.optimize.identification import Identification
from warpsim.optimize.lbfgs import LBFGS
from warpsim.optimize.levenberg_marquardt import LevenbergMarquardt
from warpsim.optimize.minimise import minimise
from warpsim.optimize.problem import FunctionProblem, Problem
from warpsim.optimize.result import Result, Row, Stopped
from warpsim.optimize.search import Progress, Stopping

__all__ = [
    "LBFGS",
    "Adam",
    "FunctionProblem",
    "Identification",
    "LevenbergMarquardt",
    "Problem",
    "Progress",
    "Result",
    "Row",
    "Stopped",
    "Stopping",
    "minimise",
]
