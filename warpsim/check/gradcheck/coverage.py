"""Which entries of an input its directions move, and why the others are not judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpsim.check.gradcheck.directions import Direction

NOT_FINITE = "infinite or not authored"
OF_THE_WORLD = "of the world, which does not move"
AT_AN_EDGE = "zero, which cannot be moved both ways"


@dataclass(frozen=True)
class Coverage:
    """What a verdict on an input is about.

    Attributes:
        judged: Entries that some direction moves.
        total: Entries of the input.
        mixtures: Random mixtures in which they are moved; 0: item by item.
        skipped: Reason → entries that are left out for it.
        norm: Of the gradient by the judged entries alone.
    """

    judged: int
    total: int
    mixtures: int
    skipped: Mapping[str, int]
    norm: float

    def __str__(self) -> str:
        mixed = f" in {self.mixtures} random mixtures" if self.mixtures else ""
        why = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
        return f"judged {self.judged} of {self.total} entries{mixed}" + (f" (skipped: {why})" if why else "")


def coverage(name: str, value: np.ndarray, directions: Sequence[Direction], gradient: np.ndarray) -> Coverage:
    """What the directions of an input judge of it.

    Args:
        name: Of the input.
        value: Its values; for q, of the shape of its tangent space.
        directions: In which it is moved.
        gradient: Of the same shape.
    """
    moved = np.zeros(value.shape, dtype=bool)
    for direction in directions:
        moved |= direction.tangent != 0.0
    reasons = np.full(value.shape, AT_AN_EDGE, dtype=object)
    if name.startswith("body."):
        reasons[0] = OF_THE_WORLD
    if name == "wrench":
        reasons[:, 0] = OF_THE_WORLD
    reasons[~np.isfinite(value)] = NOT_FINITE
    left_out = reasons[~moved].tolist()
    skipped = {reason: left_out.count(reason) for reason in (AT_AN_EDGE, OF_THE_WORLD, NOT_FINITE)}
    return Coverage(
        judged=int(moved.sum()),
        total=moved.size,
        mixtures=len(directions) if any(d.label.startswith("mixture") for d in directions) else 0,
        skipped={reason: count for reason, count in skipped.items() if count},
        norm=float(np.linalg.norm(gradient[moved])),
    )
