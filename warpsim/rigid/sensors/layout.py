"""Which sensors a model has and where their numbers stand in the measurement vector.

Kinds and conventions are MuJoCo's, so that the vector equals its `sensordata` where it has the kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.core.errors import UnsupportedError, unknown_name
from warpsim.core.precision import real, vec3
from warpsim.rigid.model.actuators import BODY, SITE
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.sensor_kinds import KINDS, numbers_of
from warpsim.scene import Sensor
from warpsim.scene.description import CONTACT_CHOICES, CONTACT_DATA, EQUALITY_KINDS

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
    form: wp.array(dtype=wp.int32)  # (nsite,) place in SITE_FORMS
    extent: wp.array(dtype=vec3)  # (nsite,) m
    ball: wp.array(dtype=wp.int32)  # 1 for ball joints
    watch: wp.array(dtype=wp.int32)  # (contact sensors,) which sensors
    watch_site: wp.array(dtype=wp.int32)  # (contact sensors,) site in whose volume contacts must lie, or -1
    watch_slots: wp.array(dtype=wp.int32)  # (contact sensors,)
    watch_size: wp.array(dtype=wp.int32)  # (contact sensors,) numbers per slot
    watch_data: wp.array(dtype=wp.int32)  # (contact sensors,) bits in the order of CONTACT_DATA
    watch_choice: wp.array(dtype=wp.int32)  # (contact sensors,) place in CONTACT_CHOICES
    watch_first: wp.array2d(dtype=wp.int32)  # (contact sensors, nshape) 1: belongs to what is measured
    watch_second: wp.array2d(dtype=wp.int32)  # (contact sensors, nshape) 1: belongs to the reference


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

    def has(self, *kinds: str) -> bool:
        """Whether there is a sensor of one of these kinds."""
        return any(s.kind in kinds for s in self.sensors)

    @property
    def has_contact(self) -> bool:
        """Whether a sensor reads contact forces per shape."""
        return self.has("contactforce")

    @property
    def has_loads(self) -> bool:
        """Whether a sensor measures what a body bears."""
        return self.has("touch", "force", "torque")

    @property
    def has_touches(self) -> bool:
        """Whether a sensor reads single contacts."""
        return self.has_loads or self.has("contact")

    @property
    def has_drives(self) -> bool:
        """Whether a sensor measures transmissions, sums of actuators or limits."""
        return any(29 <= KINDS[s.kind].code <= 37 for s in self.sensors)

    @property
    def slots(self) -> int:
        """Largest number of slots of a "contact" sensor."""
        return max((s.slots for s in self.sensors if s.kind == "contact"), default=0)


def _per_number(sensors: Sequence[Sensor], values: Sequence[float]) -> np.ndarray:
    """(size,) one value per sensor, repeated for each of its numbers."""
    return np.repeat(np.array(values, np.float64), [numbers_of(s) for s in sensors])


def noise_levels(sensors: Sequence[Sensor]) -> np.ndarray:
    """(size,) standard deviation of each number, as the scene says."""
    return _per_number(sensors, [s.noise for s in sensors])


def sensor_place(sensors: Sequence[Sensor], name: str) -> slice:
    """Where a sensor's numbers stand in the measurement vector."""
    names = [s.name for s in sensors]
    if name not in names:
        raise unknown_name("sensor", name, names)
    k = names.index(name)
    first = sum(numbers_of(s) for s in sensors[:k])
    return slice(first, first + numbers_of(sensors[k]))


def _subtree(m: Model, body: int) -> list[int]:
    """A body and all that hangs on it, the world's own frame left out."""
    parent, found = m.topology.body_parent.numpy(), {body}
    for b in range(1, m.nbody):  # parents come before children
        if parent[b] in found:
            found.add(b)
    return sorted(found - {0})


def _members(m: Model, s: Sensor, target: int) -> list[int]:
    """Bodies that a sensor sums over."""
    if s.kind in ("force", "torque"):
        return _subtree(m, int(m.actuator_topology.site_body.numpy()[target]))
    return _subtree(m, target) if s.kind.startswith("subtree") else []


def _refuse(m: Model, s: Sensor) -> None:
    """What a sensor of a known kind cannot measure in this model."""
    if s.kind in ("force", "torque") and m.equality_topology.count:
        kinds = {EQUALITY_KINDS[k] for k in m.equality_topology.kind.numpy()} - {"joint", "tendon"}
        if kinds:
            what = ", ".join(sorted(kinds))
            raise UnsupportedError(f"sensor {s.name!r}: {s.kind} leaves out forces of equalities of bodies ({what})")
    if s.kind == "jointactfrc" and m.layout.joint_kinds[m.layout.joint_names.index(s.target)] in ("ball", "free"):
        raise UnsupportedError(f"sensor {s.name!r}: {s.kind} measures hinge and slide joints; {s.target!r} is neither")
    if s.kind in ("actuatorpos", "actuatorvel"):
        transmission = m.actuator_topology.transmission.numpy()[m.layout.actuator_names.index(s.target)]
        if transmission in (int(SITE), int(BODY)):
            place = "at a site" if transmission == int(SITE) else "on a body's contacts"
            raise UnsupportedError(f"sensor {s.name!r}: the actuator {s.target!r} acts {place} and has no length")
    if s.kind == "contact":
        if s.reduce not in CONTACT_CHOICES or s.slots < 1 or [n for n in CONTACT_DATA if n in s.data] != s.data:
            raise UnsupportedError(
                f"sensor {s.name!r}: data={s.data}, reduce={s.reduce!r}, slots={s.slots}; data are some of "
                f"{', '.join(CONTACT_DATA)} in this order, reduce one of {', '.join(CONTACT_CHOICES)}, slots 1 or more"
            )


def _belongs(m: Model, kind: str, target: int) -> np.ndarray:
    """(nshape,) 1 where a shape belongs to what a contact sensor names."""
    if kind == "shape":
        return m.shape_whole.numpy() == target
    body = m.shape_body.numpy()
    if kind == "body":
        return body == target
    if kind == "subtree":
        return np.isin(body, [*_subtree(m, target), target])
    return np.ones(len(body), bool)


def _watch(m: Model, topology: SensorTopology) -> None:
    """Tables of contact sensors."""
    chosen = [i for i, s in enumerate(m.sensors) if s.kind == "contact"]
    sensors = [m.sensors[i] for i in chosen]
    target, reference = topology.target.numpy(), topology.reference.numpy()
    nshape = m.shape_body.shape[0]

    def put(name: str, values: list) -> None:
        setattr(topology, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=m.device))

    put("watch", chosen)
    put("watch_site", [target[i] if s.target_kind == "site" else -1 for i, s in zip(chosen, sensors, strict=True)])
    put("watch_slots", [s.slots for s in sensors])
    put("watch_size", [numbers_of(s) // s.slots for s in sensors])
    put("watch_data", [sum(1 << k for k, n in enumerate(CONTACT_DATA) if n in s.data) for s in sensors])
    put("watch_choice", [CONTACT_CHOICES.index(s.reduce) for s in sensors])
    first = [_belongs(m, s.target_kind, int(target[i])) for i, s in zip(chosen, sensors, strict=True)]
    second = [
        _belongs(m, s.reference_kind if s.reference is not None else "", int(reference[i]))
        for i, s in zip(chosen, sensors, strict=True)
    ]
    for name, rows in (("watch_first", first), ("watch_second", second)):
        table = np.array(rows, np.int32).reshape(len(sensors), nshape)
        setattr(topology, name, wp.array(table, dtype=wp.int32, device=m.device))


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
        "subtree": layout.body_names,
        "": ("",),
    }
    columns: dict[str, list[int]] = {
        n: [] for n in ("kind", "start", "target", "frame", "reference", "reference_frame")
    }
    columns |= {"q": [], "dof": [], "ball": []}
    size = 0
    for s in m.sensors:
        kind = KINDS.get(s.kind)
        if kind is None or s.target_kind not in kind.targets:
            what = f"{s.kind!r} of a {s.target_kind or 'world'}"
            raise UnsupportedError(f"sensor {s.name!r}: cannot measure {what}; kinds: {', '.join(KINDS)}")
        _refuse(m, s)
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
            reference_frame=0 if s.reference is None else _FRAME_CODES.get(s.reference_kind, 0),
            q=int(layout.joint_q[target]) if joint else 0,
            dof=int(layout.joint_dof[target]) if joint else 0,
            ball=int(joint and layout.joint_kinds[target] == "ball"),
        )
        for name, value in row.items():
            columns[name].append(value)
        size += numbers_of(s)
    topology = SensorTopology()
    for name, values in columns.items():
        setattr(topology, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=m.device))
    rays = [i for i, s in enumerate(m.sensors) if s.kind == "rangefinder"]
    topology.ray = wp.array(np.array(rays, np.int32), dtype=wp.int32, device=m.device)
    cutoff = [s.cutoff or np.inf for s in m.sensors]
    topology.cutoff = wp.array(_per_number(m.sensors, cutoff), dtype=real, device=m.device)
    subtrees = [_members(m, s, int(t)) for s, t in zip(m.sensors, columns["target"], strict=True)]
    starts = np.cumsum([0, *(len(bodies) for bodies in subtrees)])
    topology.subtree_start = wp.array(starts.astype(np.int32), dtype=wp.int32, device=m.device)
    members = np.array([b for bodies in subtrees for b in bodies], np.int32)
    topology.subtree_body = wp.array(members, dtype=wp.int32, device=m.device)
    topology.site_body = m.actuator_topology.site_body
    topology.shape_body = m.shape_body
    topology.form, topology.extent = m.site_form, m.site_size
    _watch(m, topology)
    return SensorLayout(m.sensors, size, topology)
