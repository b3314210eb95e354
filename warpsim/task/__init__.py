"""Tasks: what may vary in a scene and what is wanted of it, read from USD or made in Python, and their optimization.

Trainings likewise: what a policy is to learn, and its training.
"""

from warpsim.task.bound_training import BoundTraining, bind_training
from warpsim.task.controls import Control, Feedback, Knots, Periodic, Steps
from warpsim.task.optimized import OptimizedTask
from warpsim.task.outcome import Outcome
from warpsim.task.problem import Choice, TaskProblem
from warpsim.task.read import read_task, task_paths
from warpsim.task.rewards import ActionCost, Alive, Fall, JointStops, Progress, TermCost, Upright
from warpsim.task.solve import optimize
from warpsim.task.stress import Stress, StressOutcome, stress
from warpsim.task.sweep import sweep
from warpsim.task.sweep_table import Sweep, SweepPoint
from warpsim.task.task import SearchSpec, Task, VariableSpec
from warpsim.task.train import Trained, train
from warpsim.task.trained_folder import save_trained
from warpsim.task.training import Randomized, StartSpread, Training, read_training
from warpsim.task.varied import Varied

__all__ = [
    "ActionCost",
    "Alive",
    "BoundTraining",
    "Choice",
    "Control",
    "Fall",
    "Feedback",
    "JointStops",
    "Knots",
    "OptimizedTask",
    "Outcome",
    "Periodic",
    "Progress",
    "Randomized",
    "SearchSpec",
    "StartSpread",
    "Steps",
    "Stress",
    "StressOutcome",
    "Sweep",
    "SweepPoint",
    "Task",
    "TaskProblem",
    "TermCost",
    "Trained",
    "Training",
    "Upright",
    "VariableSpec",
    "Varied",
    "bind_training",
    "optimize",
    "read_task",
    "read_training",
    "save_trained",
    "stress",
    "sweep",
    "task_paths",
    "train",
]
