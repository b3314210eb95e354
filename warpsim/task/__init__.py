"""Tasks: what may vary in a scene and what is wanted of it, read from USD or made in Python, and their optimization."""

from warpsim.task.controls import Control, Feedback, Knots, Periodic, Steps
from warpsim.task.optimized import OptimizedTask
from warpsim.task.outcome import Outcome
from warpsim.task.problem import Choice, TaskProblem
from warpsim.task.read import read_task, task_paths
from warpsim.task.solve import optimize
from warpsim.task.stress import Stress, StressOutcome, stress
from warpsim.task.task import SearchSpec, Task, VariableSpec

__all__ = [
    "Choice",
    "Control",
    "Feedback",
    "Knots",
    "OptimizedTask",
    "Outcome",
    "Periodic",
    "SearchSpec",
    "Steps",
    "Stress",
    "StressOutcome",
    "Task",
    "TaskProblem",
    "VariableSpec",
    "optimize",
    "read_task",
    "stress",
    "task_paths",
]
