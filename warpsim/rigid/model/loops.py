"""Coordinates of joints that close loops, where they have a limit or a drive: what each measures, and its limits.

The six coordinates of an equality of kind "axes" are measured from its two frames, A in body a and B in body b: a
translation along an axis of A, or a turn. How a turn is measured depends on the turns that are free beside it; i and j
are axes of A and B.

- FIRST: alone, or before others. Angle of B's axis j about A's axis i.
- LAST: after others. Angle of A's axis i about B's axis j, reversed.
- MIDDLE: between two others. The angle by which B's axis j leaves the plane normal to A's axis i.
- WHOLE: angle of the whole rotation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.core.precision import vec2, vec5
from warpsim.rigid.model.parameters import LoopParameters
from warpsim.rigid.model.tables import Tables
from warpsim.scene import Equality, Scene

SLIDE = wp.constant(0)
FIRST = wp.constant(1)
MIDDLE = wp.constant(2)
LAST = wp.constant(3)
WHOLE = wp.constant(4)

TURN = 6
"""Number of the whole rotation's angle among an equality's coordinates."""


@wp.struct
class LoopTopology:
    """Per coordinate."""

    count: wp.int32
    equality: wp.array(dtype=wp.int32)
    kind: wp.array(dtype=wp.int32)  # SLIDE … WHOLE
    i: wp.array(dtype=wp.int32)  # axis of frame A
    j: wp.array(dtype=wp.int32)  # axis of frame B
    turns: wp.array(dtype=wp.int32)  # free turns of the equality


@dataclass(frozen=True)
class LoopCoordinate:
    """One coordinate with a limit or a drive."""

    equality: Equality
    axis: int
    """0 to 5, or TURN."""

    @property
    def key(self) -> tuple[str, int]:
        """Name of the equality and number of the coordinate."""
        return self.equality.name, self.axis

    @property
    def range(self) -> tuple[float, float]:
        """Its bounds, m or rad."""
        if self.axis == TURN:
            return 0.0, float(self.equality.turn_limit)
        low, high = self.equality.limits[self.axis]
        return float(low), float(high)

    @property
    def limited(self) -> bool:
        """Whether a bound is finite."""
        return bool(np.isfinite(self.equality.turn_limit if self.axis == TURN else self.range).any())

    @property
    def measure(self) -> tuple[int, int, int]:
        """(kind, i, j) of the topology."""
        if self.axis < 3:
            return int(SLIDE), self.axis, self.axis
        if self.axis == TURN:
            return int(WHOLE), 0, 0
        turns = free_turns(self.equality)
        place = turns.index(self.axis - 3)
        if len(turns) == 1:
            return int(FIRST), turns[0], (turns[0] + 1) % 3
        kind = FIRST if place == 0 else LAST if place == len(turns) - 1 else MIDDLE
        return int(kind), turns[0], turns[-1]


def free_turns(equality: Equality) -> list[int]:
    """Axes about which the equality lets bodies turn."""
    return [axis for axis in range(3) if not equality.locked[3 + axis]]


def loop_coordinates(scene: Scene) -> list[LoopCoordinate]:
    """The coordinates of active equalities that have a limit or a drive."""
    driven = {(drive.joint, drive.axis) for drive in scene.drives if drive.axis is not None}
    found = []
    for equality in scene.equalities:
        if equality.kind != "axes" or not equality.active or not scene.options.constraints:
            continue
        for axis in range(TURN + 1):
            coordinate = LoopCoordinate(equality, axis)
            if coordinate.limited or coordinate.key in driven:
                found.append(coordinate)
    return found


def loops(t: Tables, scene: Scene, equality_names: tuple[str, ...]) -> tuple[LoopTopology, LoopParameters]:
    """Topology and parameters of all such coordinates."""
    found = loop_coordinates(scene)
    measures = [coordinate.measure for coordinate in found]
    topology = LoopTopology()
    topology.count = len(found)
    topology.equality = t.integers([equality_names.index(coordinate.equality.name) for coordinate in found])
    topology.kind, topology.i, topology.j = (t.integers([m[k] for m in measures]) for k in range(3))
    topology.turns = t.integers([len(free_turns(coordinate.equality)) for coordinate in found])
    p = LoopParameters()
    p.range = t.parameter("loop.range", [coordinate.range for coordinate in found], vec2)
    p.solref = t.parameter("loop.solref", [coordinate.equality.limit_solref for coordinate in found], vec2)
    p.solimp = t.parameter("loop.solimp", [coordinate.equality.limit_solimp for coordinate in found], vec5)
    return topology, p
