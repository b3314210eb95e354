"""Why a task's variables do not reach its objective: what never touched, which controls are cut off, what to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from warpsim.objective.shapes import shapes_of
from warpsim.objective.success import control_targets
from warpsim.sim.trajectory import Observed
from warpsim.task.bound_controls import BoundControl
from warpsim.task.problem import TaskProblem

_LISTED = 6


def unreached(problem: TaskProblem, x: torch.Tensor) -> tuple[str, ...]:
    """What a rollout shows of why the objective does not depend on the variables, and what to try, in sentences.

    Args:
        problem: Whose gradient is zero in all components.
        x: (n,): where it is.
    """
    model = problem.sim.model
    sizes = {"contact_force": len(model.layout.shape_names), "saturated": model.saturation_size}
    outputs = [name for name, size in sizes.items() if size]
    with torch.no_grad():
        episode = problem.episode(problem.choice(x[None].detach()), shown=True, outputs=outputs)
    shown = episode.trajectory
    still, apart = _still(problem, shown), _apart(problem, shown)
    cut = [line for bound in problem.controls for line in _cut(problem, bound, shown, episode.inputs[bound.channel])]
    return (
        "The variables do not reach the objective: it has no slope along any of them where the search starts, so no "
        "gradient method can leave it.",
        *([f"{_listed(still)} did not move at all."] if still else []),
        *([f"{_listed(apart)} touched nothing during the whole rollout."] if apart else []),
        *cut,
        " ".join(_advice(problem, apart=bool(apart), cut=bool(cut))),
    )


def _still(problem: TaskProblem, shown: Observed) -> list[str]:
    """Bodies that could move and did not."""
    positions, rotations = shown.numpy("body_position")[:, 0], shown.numpy("body_rotation")[:, 0]
    layout = problem.sim.model.layout
    found = []
    for body in problem.sim.scene.bodies:
        place = layout.body(body.name)
        if not (np.ptp(positions[:, place], axis=0).any() or np.ptp(rotations[:, place], axis=0).any()):
            found.append(body.name)
    return found


def _apart(problem: TaskProblem, shown: Observed) -> list[str]:
    """Bodies with colliders on which no contact ever acted."""
    if "contact_force" not in shown:
        return []
    forces, order = shown.numpy("contact_force")[:, 0], problem.sim.model.layout.shape_names
    scene = problem.sim.scene
    colliding = {shape.body for shape in scene.shapes if shape.body is not None and shape.collides}
    return [
        body.name
        for body in scene.bodies
        if body.name in colliding
        and not any(forces[:, order.index(name)].any() for name in shapes_of(scene, body.name) if name in order)
    ]


def _cut(problem: TaskProblem, bound: BoundControl, shown: Observed, given: torch.Tensor) -> Iterator[str]:
    """Says which of a control's targets are at a limit in every step."""
    if "saturated" not in shown or bound.channel not in ("actuator", "drive_target", "drive_velocity"):
        return
    flags = shown.numpy("saturated")[1:, 0]
    first = 0 if bound.channel == "actuator" else len(problem.sim.scene.actuators)
    names = control_targets(problem.sim, bound.channel)
    for place in bound.places:
        if first + place < flags.shape[1] and (flags[:, first + place] != 0).all():
            least, most = float(given[:, 0, place].min()), float(given[:, 0, place].max())
            yield (
                f"{bound.control.name}: {names[place]} is at its limit in every step (it is given {least:.4g} to "
                f"{most:.4g}), where its control has no effect."
            )


def _advice(problem: TaskProblem, *, apart: bool, cut: bool) -> Iterator[str]:
    yield "Try"
    ways = ["starts = 16 (--starts 16), which looks from many places"]
    if apart:
        ways.append("a start from which the bodies touch")
        ways.append("warpsim:contactSoftening on the PhysicsScene, which gives a slope before touch")
    if cut:
        ways.append("smaller first values, or a wider range of the actuator")
    ways.append("other variables, a longer duration, or a term that the variables can change from here")
    yield ", ".join(ways[:-1]) + f", or {ways[-1]}."


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_LISTED])
    more = len(names) - len(shown)
    if more:
        return ", ".join(shown) + f" and {more} more bodies"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}"
