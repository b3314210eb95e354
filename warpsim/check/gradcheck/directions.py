"""The directions in which inputs are moved: dof by dof, control by control, item by item of a parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.rigid.model.joint_names import dof_names
from warpsim.rigid.model.model import Model

DEFAULT_PARAMETERS = (
    "body.mass",
    "body.com",
    "shape.mass",
    "shape.density",
    "shape.size",
    "shape.friction",
    "joint.damping",
    "joint.stiffness",
    "joint.armature",
    "actuator.gear",
    "drive.stiffness",
    "drive.damping",
    "world.gravity",
)
"""Checked unless others are named."""

_SIGNED = ("position", "com", "anchor", "reference", "rest", "gravity", "wind", "bias", "gear", "polynomial")
"""Last parts of parameter names whose zeros may be moved either way; other zeros are edges of what is allowed."""

_MOST = 24
"""Items of an input that are moved one by one; more are mixed into that many random directions."""


@dataclass(frozen=True)
class Direction:
    """A direction in the tangent space of one input.

    Attributes:
        kind: "control", "state" or "parameter".
        input: A field of the state, a control, or a parameter.
        label: The dof, actuator, body … that moves; "" where there is only one or all do.
        item: Its index, None where several move.
        tangent: Of the input's shape; of nv numbers for q.
    """

    kind: str
    input: str
    label: str
    item: int | None
    tangent: np.ndarray


def state_directions(name: str, shape: tuple[int, ...], model: Model) -> list[Direction]:
    """Unit moves of every dof's position or velocity, or of every number of another field."""
    size = math.prod(shape)
    labels = dof_names(model.layout) if name in ("q", "qd") else [str(i) for i in range(size)]
    rows = (row.reshape(shape) for row in np.eye(size))
    return _spread([Direction("state", name, labels[i], i, row) for i, row in enumerate(rows)])


def control_directions(name: str, value: np.ndarray, model: Model, rng: np.random.Generator) -> list[Direction]:
    """One per actuator, drive, dof or body: a random course in time over the window's N steps."""
    layout = model.layout
    labels = {"joint_force": dof_names(layout), "wrench": layout.body_names, "actuator": layout.actuator_names}
    labels |= dict.fromkeys(("drive_target", "drive_velocity"), layout.drive_names)
    found = []
    for i, label in enumerate(labels.get(name) or [str(i) for i in range(value.shape[1])]):
        if name == "wrench" and i == 0:
            continue  # nothing moves the world
        tangent = np.zeros(value.shape)
        tangent[:, i] = rng.normal(size=tangent[:, i].shape) * np.maximum(1.0, np.abs(value[:, i]))
        found.append(Direction("control", name, label, i, tangent))
    return _spread(found)


def parameter_directions(name: str, value: np.ndarray, model: Model, rng: np.random.Generator) -> list[Direction]:
    """One per item (body, shape, dof …): random within the item, sized by its numbers."""
    finite = np.isfinite(value)
    sizes = np.where(finite, np.abs(np.where(finite, value, 0.0)), 0.0)
    if name.split(".")[-1] in _SIGNED:
        sizes = np.where(finite, np.maximum(sizes, 0.1 * sizes.max(initial=0.0) or 0.01), 0.0)
    moves = 0.3 * rng.normal(size=value.shape) * sizes
    if name.startswith("world.") or not value.ndim:
        return [Direction("parameter", name, "", None, moves)]
    labels = _labels(name, len(value), model)
    found = []
    for i, label in enumerate(labels):
        if moves[i].any() and not (name.startswith("body.") and i == 0):
            tangent = np.zeros(value.shape)
            tangent[i] = moves[i]
            found.append(Direction("parameter", name, label, i, tangent))
    return _spread(found)


def _labels(name: str, count: int, model: Model) -> Sequence[str]:
    layout = model.layout
    known: dict[str, tuple[Sequence[str], ...]] = {
        "body": (layout.body_names,),
        "shape": (layout.shape_names,),
        "joint": (layout.joint_names, dof_names(layout)),
        "limit": (layout.joint_names, dof_names(layout)),
        "actuator": (layout.actuator_names,),
        "drive": (layout.drive_names,),
        "tendon": (layout.tendon_names,),
    }
    for names in known.get(name.split(".")[0], ()):
        if len(names) == count:
            return names
    return [str(i) for i in range(count)]


def _spread(found: list[Direction]) -> list[Direction]:
    """The directions themselves, or as many random mixtures as are affordable."""
    if len(found) <= _MOST:
        return found
    rng = np.random.default_rng(len(found))
    weights = rng.choice([-1.0, 1.0], size=(_MOST, len(found)))
    first = found[0]
    return [
        Direction(
            first.kind, first.input, f"mixture {k}", None, sum(w * d.tangent for w, d in zip(row, found, strict=True))
        )
        for k, row in enumerate(weights)
    ]
