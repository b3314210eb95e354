"""Which sensors a model has and where their numbers stand in the measurement vector.

Kinds and conventions are MuJoCo's, so that the vector equals its `sensordata` where it has the kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.core.errors import UnsupportedError, unknown_name
from warpsim.core.precision import real
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.sensor_kinds import KINDS
from warpsim.scene import Sensor

_FRAME_CODES = {"site": 0, "body": 1, "shape": 2, "inertia": 3}
_DIRECTIONS = {"ballquat", "framequat", "framexaxis", "frameyaxis", "framezaxis"}
"""Kinds whose numbers no cutoff may cut."""


@wp.struct
class SensorTopology:
    """Per sensor."""

    kind: wp.array(dtype=wp.int32)
    start: wp.array(dtype=wp.int32)  # first place in the measurement vector
    target: wp.array(dtype=wp.int32)  # index of the joint, tendon, actuator, site, body or shape
    frame: wp.array(dtype=wp.int32)  # 0 site, 1 body, 2 shape, 3 principal axes of inertia
    reference: wp.array(dtype=wp.int32)  # index, or -1 for the world
    reference_frame: wp.array(dtype=wp.int32)
    q: wp.array(dtype=wp.int32)  # of joints: first coordinate
    dof: wp.array(dtype=wp.int32)  # of joints: first dof
    ray: wp.array(dtype=wp.int32)  # (rangefinders,) which sensors
    subtree_start: wp.array(dtype=wp.int32)  # (sensors + 1,) first body of a subtree
    subtree_body: wp.array(dtype=wp.int32)  # bodies of subtrees, of other kinds none
    cutoff: wp.array(dtype=real)  # (size,) largest absolute value of each number
    site_body: wp.array(dtype=wp.int32)  # (nsite,)
    shape_body: wp.array(dtype=wp.int32)  # (nshape,)


@dataclass(frozen=True)
class SensorLayout:
    """The measurement vector of a model, on the host and on its device."""

    sensors: tuple[Sensor, ...]
    size: int
    topology: SensorTopology

    def place(self, name: str) -> slice:
        """Where a sensor's numbers stand."""
        return sensor_place(self.sensors, name)

    @property
    def has_cutoff(self) -> bool:
        """Whether a sensor's numbers are cut at a largest value."""
        return any(s.cutoff > 0 for s in self.sensors)

    @property
    def has_subtree(self) -> bool:
        """Whether a sensor measures a body with all that hangs on it."""
        return any(s.kind.startswith("subtree") for s in self.sensors)

    @property
    def has_contact(self) -> bool:
        """Whether a sensor reads contact forces."""
        return any(s.kind == "contactforce" for s in self.sensors)


def _per_number(sensors: Sequence[Sensor], values: Sequence[float]) -> np.ndarray:
    """(size,) one value per sensor, repeated for each of its numbers."""
    return np.repeat(np.array(values, np.float64), [KINDS[s.kind].size for s in sensors])


def noise_levels(sensors: Sequence[Sensor]) -> np.ndarray:
    """(size,) standard deviation of each number, as the scene says."""
    return _per_number(sensors, [s.noise for s in sensors])


def sensor_place(sensors: Sequence[Sensor], name: str) -> slice:
    """Where a sensor's numbers stand in the measurement vector."""
    names = [s.name for s in sensors]
    if name not in names:
        raise unknown_name("sensor", name, names)
    k = names.index(name)
    first = sum(KINDS[s.kind].size for s in sensors[:k])
    return slice(first, first + KINDS[sensors[k].kind].size)


def _subtree(m: Model, body: int) -> list[int]:
    """A body and all that hangs on it, the world's own frame left out."""
    parent, found = m.topology.body_parent.numpy(), {body}
    for b in range(1, m.nbody):  # parents come before children
        if parent[b] in found:
            found.add(b)
    return sorted(found - {0})


def sensor_layout(m: Model) -> SensorLayout:
    """Lays out the sensors of a model.

    Raises:
        UnsupportedError: For a kind that is not in `KINDS` or that cannot measure its target.
    """
    layout = m.layout
    index = {
        "joint": layout.joint_names,
        "tendon": layout.tendon_names,
        "actuator": layout.actuator_names,
        "site": layout.site_names,
        "shape": layout.shape_names,
        "body": layout.body_names,
        "inertia": layout.body_names,
    }
    columns: dict[str, list[int]] = {
        n: [] for n in ("kind", "start", "target", "frame", "reference", "reference_frame")
    }
    columns |= {"q": [], "dof": []}
    size = 0
    for s in m.sensors:
        kind = KINDS.get(s.kind)
        if kind is None or s.target_kind not in kind.targets:
            what = f"{s.kind!r} of a {s.target_kind or 'world'}"
            raise UnsupportedError(f"sensor {s.name!r}: cannot measure {what}; kinds: {', '.join(KINDS)}")
        if s.cutoff > 0 and s.kind in _DIRECTIONS:
            raise UnsupportedError(f"sensor {s.name!r}: a cutoff of {s.kind} would bend a direction; leave it out")
        target = index[s.target_kind].index(s.target)
        joint = s.target_kind == "joint"
        row = dict(
            kind=kind.code,
            start=size,
            target=target,
            frame=_FRAME_CODES.get(s.target_kind, 0),
            reference=-1 if s.reference is None else index[s.reference_kind].index(s.reference),
            reference_frame=0 if s.reference is None else _FRAME_CODES[s.reference_kind],
            q=int(layout.joint_q[target]) if joint else 0,
            dof=int(layout.joint_dof[target]) if joint else 0,
        )
        for name, value in row.items():
            columns[name].append(value)
        size += kind.size
    topology = SensorTopology()
    for name, values in columns.items():
        setattr(topology, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=m.device))
    rays = [i for i, s in enumerate(m.sensors) if s.kind == "rangefinder"]
    topology.ray = wp.array(np.array(rays, np.int32), dtype=wp.int32, device=m.device)
    cutoff = [s.cutoff or np.inf for s in m.sensors]
    topology.cutoff = wp.array(_per_number(m.sensors, cutoff), dtype=real, device=m.device)
    subtrees = [
        _subtree(m, int(t)) if s.kind.startswith("subtree") else []
        for s, t in zip(m.sensors, columns["target"], strict=True)
    ]
    starts = np.cumsum([0, *(len(bodies) for bodies in subtrees)])
    topology.subtree_start = wp.array(starts.astype(np.int32), dtype=wp.int32, device=m.device)
    members = np.array([b for bodies in subtrees for b in bodies], np.int32)
    topology.subtree_body = wp.array(members, dtype=wp.int32, device=m.device)
    topology.site_body = m.actuator_topology.site_body
    topology.shape_body = m.shape_body
    return SensorLayout(m.sensors, size, topology)
