"""Sensors, which no USD schema describes: prims with `warpsim:sensor:*` properties.

- token `kind`: a kind of `Sensor`, e.g. "gyro"
- rel `target`: what is measured: a body, site, collider, joint, tendon or actuator
- token `targetKind`: which of these, where the prim is several ("inertia" for a body's principal frame)
- rel `reference`, token `referenceKind`: what it is measured from
- double `noise` (standard deviation), `cutoff` (largest absolute value), in SI
"""

from __future__ import annotations

from pxr import Usd

from warpsim.core.errors import SceneError
from warpsim.io.usd.context import Context
from warpsim.io.usd.state_names import FREE_SUFFIX
from warpsim.scene import Scene, Sensor
from warpsim.scene.description import SENSOR_KINDS, SENSOR_TARGETS

PREFIX = "warpsim:sensor:"
VOLUME_SENSORS = ("touch", "contact")
"""Kinds that need what USD has no place for."""


def add_sensors(context: Context) -> None:
    """Adds every sensor prim; run after everything that a sensor may point at."""
    for path in context.order:
        prim = context.prim(path)
        kind = context.read.token(prim, PREFIX + "kind")
        if kind is None:
            continue
        target_kind, target = _target(context, prim, "target")
        reference_kind, reference = _target(context, prim, "reference")
        sensor = Sensor(str(path), kind, target, target_kind=target_kind)
        if reference_kind:
            sensor.reference, sensor.reference_kind = reference, reference_kind
        for field in ("noise", "cutoff"):
            context.take(sensor, field, prim, PREFIX + field)
        if kind in VOLUME_SENSORS:
            context.ledger.unsupported(prim, PREFIX + "kind", "sites have no volume, and sensors no slots, in USD")
            continue
        if kind not in SENSOR_KINDS:
            reason = f"no such sensor; kinds: {', '.join(SENSOR_KINDS)}"
            context.ledger.unsupported(prim, PREFIX + "kind", reason)
        context.scene.sensors.append(sensor)


def _target(context: Context, prim: Usd.Prim, end: str) -> tuple[str, str]:
    """(kind, name) of what one end of a sensor points at; two empty strings for nothing."""
    targets = context.read.targets(prim, PREFIX + end)
    chosen = context.read.token(prim, f"{PREFIX}{end}Kind", choices=SENSOR_TARGETS)
    if not targets:
        return chosen or "", ""
    found = _kinds(context.scene, str(targets[0]))
    kind = chosen or next(iter(found), None)
    if kind not in found:
        what = f"a {chosen}" if chosen else "anything that can be measured"
        raise SceneError(f"{prim.GetPath()}.{PREFIX}{end}: {targets[0]} is not {what}")
    return kind, found[kind]


def _kinds(scene: Scene, path: str) -> dict[str, str]:
    """What a prim is in the scene: kind → name there."""
    found: dict[str, str] = {}
    for kind, items in (
        ("site", scene.sites),
        ("body", scene.bodies),
        ("inertia", scene.bodies),
        ("shape", scene.shapes),
        ("joint", scene.joints),
        ("tendon", scene.tendons),
        ("actuator", scene.actuators),
    ):
        names = {item.name for item in items}
        for name in (path, path + FREE_SUFFIX) if kind == "joint" else (path,):
            if name in names:
                found.setdefault(kind, name)
    return found
