"""Optimisers over a `Problem`: a vector within bounds and the loss it gives."""

from warpsim.optimize.problem import FunctionProblem, Problem
from warpsim.optimize.result import Result, Row, Stopped

__all__ = ["FunctionProblem", "Problem", "Result", "Row", "Stopped"]
