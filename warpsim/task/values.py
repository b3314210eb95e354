"""A choice of the optimizer as values of attributes: what a result's layer holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from warpsim.io.usd.writer import OptimizedValue
from warpsim.task.problem import TaskProblem


def is_prim(name: str) -> bool:
    """Whether a task's or control's name is the path of a prim, or just a name given in Python."""
    return name.startswith("/")


def chosen_values(
    problem: TaskProblem, x: torch.Tensor, gradients: Mapping[str, np.ndarray] | None = None
) -> list[OptimizedValue]:
    """Every value that x (n,) sets: variables as their attributes' types store them, controls and durations as doubles.

    Args:
        problem: The task on its source.
        x: (n,).
        gradients: d loss / d attribute by path, kept beside the values.
    """
    found: list[OptimizedValue] = []
    choice = problem.choice(x[None].detach())
    if problem.variables is not None:
        part = x.detach()[: problem.variables.size]
        by_handle: dict[Any, Any] = {
            handle: gradients[handle.path]
            for variable in problem.variables.variables
            for handle in variable.attributes
            if gradients is not None and handle.path in gradients
        }
        found += problem.variables.optimized(part, by_handle)
    for bound, values in zip(problem.controls, choice.controls, strict=True):
        if not is_prim(bound.control.name):
            continue
        found.append(
            OptimizedValue(bound.control.name, "values", values[0].cpu().numpy().ravel(), type_name="double[]")
        )
    if problem.task.duration_range is not None and is_prim(problem.task.name):
        name = problem.task.name
        found.append(OptimizedValue(name, "duration", float(choice.duration[0]), problem.task.duration))
        found.append(OptimizedValue(name, "steps", problem.steps, type_name="int"))
    return found
