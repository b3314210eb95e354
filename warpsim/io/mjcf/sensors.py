"""Sensors of a MuJoCo model. Those without a counterpart are noted in the ledger; they never act on the motion."""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf.engine import mujoco
from warpsim.io.mjcf.source import MjSource
from warpsim.scene.checks import sensor_targets
from warpsim.scene.description import CONTACT_CHOICES, CONTACT_DATA, Scene, Sensor

_SITE_KINDS = ("accelerometer", "velocimeter", "gyro", "force", "torque", "touch", "rangefinder")
_JOINT_KINDS = (
    "jointpos",
    "jointvel",
    "jointactfrc",
    "ballquat",
    "ballangvel",
    "jointlimitpos",
    "jointlimitvel",
    "jointlimitfrc",
)
_TENDON_KINDS = ("tendonpos", "tendonvel", "tendonactfrc", "tendonlimitpos", "tendonlimitvel", "tendonlimitfrc")
_ACTUATOR_KINDS = ("actuatorpos", "actuatorvel", "actuatorfrc")
_FRAME_KINDS = (
    "framepos",
    "framequat",
    "framexaxis",
    "frameyaxis",
    "framezaxis",
    "framelinvel",
    "frameangvel",
    "framelinacc",
    "frameangacc",
)
_SUBTREE_KINDS = ("subtreecom", "subtreelinvel", "subtreeangmom")
_GLOBAL_KINDS = ("e_potential", "e_kinetic", "clock")
_SENSOR_KINDS = {
    *_SITE_KINDS,
    *_JOINT_KINDS,
    *_TENDON_KINDS,
    *_ACTUATOR_KINDS,
    *_FRAME_KINDS,
    *_SUBTREE_KINDS,
    *_GLOBAL_KINDS,
    "contact",
}
"""MuJoCo's words for the measurements that can be taken of a Scene."""

_TARGETS = {
    mujoco.mjtObj.mjOBJ_UNKNOWN: ("", ""),
    mujoco.mjtObj.mjOBJ_BODY: ("inertia", "body"),
    mujoco.mjtObj.mjOBJ_XBODY: ("body", "body"),
    mujoco.mjtObj.mjOBJ_GEOM: ("shape", "geom"),
    mujoco.mjtObj.mjOBJ_SITE: ("site", "site"),
    mujoco.mjtObj.mjOBJ_JOINT: ("joint", "joint"),
    mujoco.mjtObj.mjOBJ_TENDON: ("tendon", "tendon"),
    mujoco.mjtObj.mjOBJ_ACTUATOR: ("actuator", "actuator"),
}
"""MuJoCo's object type → the Scene's word for it (SENSOR_TARGETS) and the kind whose names it uses."""


def read_sensors(source: MjSource, scene: Scene) -> list[Sensor]:
    """Sensors that have a counterpart and whose targets are in `scene`; the others are noted as unsupported."""
    known = sensor_targets(scene)
    sensors = []
    for index in range(source.model.nsensor):
        path = source.path("sensor", index)
        kind = mujoco.mjtSensor(source.model.sensor_type[index]).name.removeprefix("mjSENS_").lower()
        trouble = _trouble(source.model, index, kind)
        if trouble:
            source.unsupported(path, kind, trouble)
            continue
        sensor = _read_sensor(source, index, kind)
        if _targets_known(sensor, known):
            sensors.append(sensor)
        else:
            source.unsupported(path, kind, "what it measures is not modeled")
    return sensors


def _trouble(model: mujoco.MjModel, index: int, kind: str) -> str:
    if kind not in _SENSOR_KINDS:
        return "there is no such measurement"
    objects = {mujoco.mjtObj(model.sensor_objtype[index]), mujoco.mjtObj(model.sensor_reftype[index])}
    if not objects <= _TARGETS.keys():
        return "cameras are not modeled"
    if kind == "contact" and model.sensor_intprm[index, 0] >> len(CONTACT_DATA):
        return "contact sensors tell no velocities"
    if model.sensor_delay[index] != 0 or np.any(model.sensor_interval[index] != 0):
        return "delayed and sampled sensors are not modeled"
    return ""


def _read_sensor(source: MjSource, index: int, kind: str) -> Sensor:
    model = source.model
    target_kind, target = _object(source, model.sensor_objtype[index], model.sensor_objid[index])
    reference_kind, reference = _object(source, model.sensor_reftype[index], model.sensor_refid[index])
    sensor = Sensor(
        name=source.names["sensor"][index],
        kind=kind,
        target=target,
        target_kind=target_kind,
        reference=reference if reference_kind else None,
        reference_kind=reference_kind,
        noise=float(model.sensor_noise[index]),
        cutoff=float(model.sensor_cutoff[index]),
    )
    if kind == "contact":
        _read_contact_settings(model, index, sensor)
    return sensor


def _read_contact_settings(model: mujoco.MjModel, index: int, sensor: Sensor) -> None:
    """What a contact sensor tells, and of what: a body alone is a body here, and one with its subtree "subtree"."""
    words = {"inertia": "body", "body": "subtree"}
    sensor.target_kind = words.get(sensor.target_kind, sensor.target_kind)
    sensor.reference_kind = words.get(sensor.reference_kind, sensor.reference_kind)
    bits, choice, sensor.slots = (int(n) for n in model.sensor_intprm[index, :3])
    sensor.data = [name for k, name in enumerate(CONTACT_DATA) if bits >> k & 1]
    sensor.reduce = CONTACT_CHOICES[choice]


def _object(source: MjSource, object_type: int, index: int) -> tuple[str, str]:
    """(word of SENSOR_TARGETS, name) of what a sensor points at; the world's name is ""."""
    word, kind = _TARGETS[mujoco.mjtObj(object_type)]
    if index < 0 or not word:
        return "", ""
    name = source.names[kind][index]
    return word, "" if kind == "body" and index == 0 else name


def _targets_known(sensor: Sensor, known: dict[str, set[str]]) -> bool:
    return sensor.target in known[sensor.target_kind] and (
        sensor.reference is None or sensor.reference in known[sensor.reference_kind]
    )
