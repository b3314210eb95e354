"""When and how the decisions of a rollout change, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.check.gradcheck.modes import StepModes
from warpsim.rigid.model.model import Model


@dataclass(frozen=True)
class Switch:
    """A change of mode.

    Attributes:
        step: First step of the new mode.
        time: s.
        text: What changed.
    """

    step: int
    time: float
    text: str


def find_switches(modes: Sequence[StepModes], model: Model, timestep: float) -> list[Switch]:
    """Every change of world 0's decisions."""
    found = []
    for k in range(1, len(modes)):
        if modes[k].signature(0) != modes[k - 1].signature(0):
            found.append(Switch(k, k * timestep, _text(modes[k - 1], modes[k], model)))
    return found


def _text(before: StepModes, after: StepModes, model: Model) -> str:
    parts = []
    old, new = _pairs(before, model), _pairs(after, model)
    parts += [f"{pair} touch" for pair in sorted(new - old)]
    parts += [f"{pair} part" for pair in sorted(old - new)]
    parts += [f"{pair} collide" for pair in sorted(_struck(after, model) - _struck(before, model))]
    names = [*model.layout.actuator_names, *model.layout.drive_names]
    width = before.saturated.shape[1]
    changed = np.flatnonzero(before.saturated[0] != after.saturated[0])
    for i in changed:
        name = names[i] if i < len(names) else f"range {i} of {width}"
        parts.append(f"{name} {'reaches' if after.saturated[0, i] else 'leaves'} its limit")
    return ", ".join(parts) or "a contact's feature, a cone's zone or a limit changes"


def _pairs(modes: StepModes, model: Model) -> set[str]:
    """Pairs in reach of each other."""
    return {_pair(i, model) for pair, _ in modes.contacts for i in pair[0] if i >= 0}


def _struck(modes: StepModes, model: Model) -> set[str]:
    """Pairs whose impact the step resolves."""
    return {_pair(i, model) for i in modes.impacts[0][0] if i >= 0} if modes.impacts else set()


def _pair(i: int, model: Model) -> str:
    return " and ".join(model.layout.shape_names[s] for s in model.pair_table.pair_shapes.numpy()[i])
