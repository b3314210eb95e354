"""A scene in words: its tree, masses and sizes, and the contract of its simulation: state, controls, settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from warpsim.coupling.outline import SceneOutline, outline_scene
from warpsim.rigid.model.sensor_kinds import KINDS, numbers_of
from warpsim.scene.actuation import Tendon
from warpsim.scene.constraints import Equality
from warpsim.scene.convergence import solver_limits
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE, Body, Joint, Scene, Shape
from warpsim.scene.ledger import STATUSES
from warpsim.scene.pieces import pieces_of
from warpsim.scene.units import FORCE, POSITION, VELOCITY, actuator_input_unit, drive_limits, interval
from warpsim.sim.control_names import ControlNames, default_controls

_OUTPUTS = {
    "body_position": "m, world; index 0 is the world itself",
    "body_rotation": "unit quaternion (w, x, y, z), body → world",
    "body_velocity": "rad/s and m/s: angular, then that of the body's origin; world axes",
    "com": "m, world: center of all mass",
    "linear_momentum": "N·s, world",
    "angular_momentum": "N·m·s about the center of mass, world axes",
    "potential_energy": "J: of gravity and springs",
    "kinetic_energy": "J",
    "saturated": "-1 or 1 where a range cuts an actuator, a drive or a joint's summed force",
    "contact_force": "N, world axes: sum of the contacts on each shape",
    "mode": "equal at two steps of equal decisions: contacts, friction, limits, ranges that cut, impacts",
    "contact_points": "m, world: where each contact is; zero in places that none fills",
    "contact_point_forces": "N, world axes: of each contact, on the shape that moves, or the second of two",
    "sensors": "measurements at the step's start, listed below",
    "constraint_error": "m or rad: largest violation of an equality or a joint's limit",
    "solver_iterations": "of Newton's method",
    "solver_status": "0 converged, 3 at rounding; others are failures",
    "solver_error": "scaled gradient norm at the solution",
    "contact_count": "active contacts",
    "penetration": "m: deepest",
}
"""Unit, frame and meaning of each output."""


_PASSIVE = ("stiffness", "damping", "armature", "friction_loss")
_AXES = ("along x", "along y", "along z", "about x", "about y", "about z")


def describe(scene: Scene, *, ledger: bool = False) -> str:
    """The whole description.

    Args:
        scene: As it was read.
        ledger: Whether to list every entry of the reader's ledger instead of the unsupported ones.
    """
    outline = outline_scene(scene)
    sections = {
        "scene": _sizes(outline, scene),
        "bodies": _tree(outline, scene),
        "couplings": _couplings(scene),
        "state": (*_state(scene), *_matter_states(outline)),
        "controls": _controls(outline, scene),
        "observation": _observation(outline, scene),
        "settings": _settings(outline, scene),
        "ledger": _ledger(scene, every=ledger),
    }
    texts = {title: [f"  {line}" for line in lines] for title, lines in sections.items()}
    return "\n\n".join("\n".join([title, *lines]) for title, lines in texts.items() if lines)


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines whose columns stand under each other, three spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _vector(values: np.ndarray) -> str:
    """Three digits after the point; what float32 leaves of zero is zero."""
    return f"({', '.join(f'{round(float(x), 3) + 0.0:g}' for x in values)})"


def _sizes(outline: SceneOutline, scene: Scene) -> Iterator[str]:
    yield scene.name
    counts: dict[str, Collection[object]] = {
        "bodies": scene.bodies,
        "joints": scene.joints,
        "shapes": scene.shapes,
        "sites": scene.sites,
        "tendons": scene.tendons,
        "actuators": scene.actuators,
        "drives": scene.drives,
        "equalities": scene.equalities,
        "sensors": scene.sensors,
        "matters": scene.matters,
        "meshes": scene.meshes,
    }
    yield ", ".join(_count(len(things), kind) for kind, things in counts.items() if things) or "empty"
    bodies = outline.model
    size = f"{bodies.layout.nq} coordinates, {bodies.nv} degrees of freedom"
    yield f"{size}, {bodies.body_mass.sum():.6g} kg in all"


def _count(number: int, things: str) -> str:
    """A number and what it counts, in the singular for one."""
    single = {"bodies": "body", "equalities": "equality", "meshes": "mesh"}.get(things, things.removesuffix("s"))
    return f"{number} {single if number == 1 else things}"


def _short(name: str, above: str | None) -> str:
    """A USD path relative to that of what stands above it in the tree."""
    return name.removeprefix(f"{above}/") if above else name


def _tree(outline: SceneOutline, scene: Scene) -> Iterator[str]:
    mass, index = outline.model.body_mass, outline.model.layout.body
    children: dict[str | None, list[Body]] = {}
    for body in scene.bodies:
        children.setdefault(body.parent, []).append(body)
    joints: dict[str, list[Joint]] = {}
    for joint in scene.joints:
        joints.setdefault(joint.body, []).append(joint)

    def walk(parent: str | None, depth: int) -> Iterator[str]:
        for body in children.get(parent, []):
            shown = "   ".join(
                [
                    _short(body.name, parent),
                    f"{mass[index(body.name)]:.4g} kg",
                    *(["kinematic"] if body.kinematic else []),
                    *_shapes(scene, body.name),
                ]
            )
            yield "  " * depth + shown
            for joint in joints.get(body.name, []):
                yield "  " * depth + "  ⤷ " + _joint(joint, body.name)
            if not joints.get(body.name):
                yield "  " * depth + "  ⤷ fixed"
            yield from walk(body.name, depth + 1)

    yield "   ".join(["world", *_shapes(scene, None)])
    yield from walk(None, 1)


def _shapes(scene: Scene, body: str | None) -> list[str]:
    return [_shape(scene, shape) for shape in scene.shapes if shape.body == body and shape.piece_of is None]


def _shape(scene: Scene, shape: Shape) -> str:
    if shape.decomposition is not None:
        vertices = [len(scene.meshes[str(piece.mesh)].vertices) for piece in pieces_of(scene, shape.name)]
        return f"[{shape.kind} as {_count(len(vertices), 'convex pieces')}, {'+'.join(map(str, vertices))} vertices]"
    size = "×".join(f"{x:.3g}" for x in shape.size if x)
    return f"[{shape.kind}{' ' + size if size and shape.kind not in ('mesh', 'hull') else ''}]"


def _joint(joint: Joint, body: str) -> str:
    way = "along" if joint.kind == "slide" else "about"
    axis = f" {way} {_vector(joint.axis)}" if joint.kind in ("hinge", "slide") else ""
    limit = f", {interval(joint.limit, 'rad' if joint.kind == 'ball' else POSITION[joint.kind])}" if joint.limit else ""
    return f"{joint.kind} {_short(joint.name, body)}{axis}{limit}{_nonzero(joint, *_PASSIVE)}"


def _nonzero(item: Joint | Tendon, *fields: str) -> str:
    """The fields that are not zero, in words, SI."""
    values = {field: getattr(item, field) for field in fields}
    return "".join(f", {field.replace('_loss', '')} {value:.4g}" for field, value in values.items() if value)


def _couplings(scene: Scene) -> Iterator[str]:
    """Tendons and equalities: what ties coordinates or bodies together beside the tree."""
    for tendon in scene.tendons:
        terms = " ".join(f"{c:+.4g}·{name}" for c, name in zip(tendon.coefficients, tendon.joints, strict=True))
        terms = terms or "through " + ", ".join(point.name or "a pulley" for point in tendon.path)
        limit = f", {interval(tendon.limit, 'long, in rad or m')}" if tendon.limit else ""
        yield f"tendon {tendon.name}: {terms}{limit}{_nonzero(tendon, 'stiffness', 'damping', 'friction_loss')}"
    for equality in scene.equalities:
        ends = f"{equality.a or 'world'} and {equality.b or 'world'}"
        off = "" if equality.active else " (off)"
        yield f"{equality.kind} {equality.name}{off}: {ends}{_equality(equality)}"


def _equality(equality: Equality) -> str:
    """What an equality of bodies leaves free, or how it couples coordinates."""
    if equality.kind == "distance":
        return f", {interval(equality.distance_range, 'm')} apart"
    if equality.kind in ("joint", "tendon"):
        return f", polynomial {_vector(equality.polynomial)}"
    if equality.kind != "axes":
        return ""
    free = []
    for axis, name in enumerate(_AXES):
        if not equality.locked[axis]:
            low, high = equality.limits[axis]
            unit = "m" if axis < 3 else "rad"
            free.append(f"{name} {interval(None if np.isinf([low, high]).all() else (low, high), unit)}")
    cone = f", turned by at most {equality.turn_limit:.4g} rad" if np.isfinite(equality.turn_limit) else ""
    return f", free: {'; '.join(free) or 'nothing'}{cone}"


def _state(scene: Scene) -> Iterator[str]:
    q = v = 0
    rows = []
    for joint in scene.joints:
        nq, nv = JOINT_Q_SIZE[joint.kind], JOINT_DOF_SIZE[joint.kind]
        frame = {"free": " (velocity: world, spin: body)", "ball": " (body's frame)"}.get(joint.kind, "")
        position, velocity = POSITION[joint.kind], VELOCITY[joint.kind]
        rows.append((f"q{_places(q, nq)} {position}", f"qd{_places(v, nv)} {velocity}", joint.name + frame))
        q, v = q + nq, v + nv
    yield from _columns(rows)
    active = [a.name for a in scene.actuators if a.dynamics != "none"]
    for i, name in enumerate(active):
        yield f"activation[{i}] of {name}"


def _matter_states(outline: SceneOutline) -> Iterator[str]:
    """Fields of matters other than rigid bodies."""
    for f in outline.matter_state:
        yield f"{f.name}[{', '.join(map(str, f.value_shape))}]"


def _places(first: int, count: int) -> str:
    return f"[{first}]" if count == 1 else f"[{first}:{first + count}]"


def _controls(outline: SceneOutline, scene: Scene) -> Iterator[str]:
    chosen = ControlNames(outline, default_controls(outline))
    yield f"control = {' + '.join(chosen.names)}, {chosen.size} numbers"
    kinds = {joint.name: joint.kind for joint in scene.joints}
    rows = []
    for i, actuator in enumerate(scene.actuators):
        unit = actuator_input_unit(scene, actuator)
        gear = ", gear " + (_vector(actuator.gear) if actuator.gear[1:].any() else f"{actuator.gear[0]:g}")
        force = f", force {interval(actuator.force_range, 'N or N·m')}" if actuator.force_range else ""
        limits = interval(actuator.control_range, unit)
        force += ", in the site's frame" if actuator.transmission == "site" else ""
        target = f"{actuator.name} → {actuator.transmission} {actuator.target}"
        rows.append((f"actuator[{i}]", f"{limits}{gear}{force}", target))
    yield from _columns(rows)
    drives = []
    for i, drive in enumerate(scene.drives):
        kind = kinds[drive.joint] if drive.axis is None else "slide" if drive.axis < 3 else "hinge"
        most = f"at most {drive.max_force:.4g} {FORCE[kind]}" if np.isfinite(drive.max_force) else "any force"
        gains = f"stiffness {drive.stiffness:.4g}, damping {drive.damping:.4g}, {most}"
        limits = f"{interval(drive_limits(scene, drive), POSITION[kind])}, now {drive.target:.4g}"
        drives.append((f"drive_target[{i}]", limits, gains, drive.name))
    yield from _columns(drives)
    yield f"also: joint_force[{outline.model.nv}], N or N·m per degree of freedom"
    yield f"also: wrench[{outline.model.nbody}, 6], N and N·m at each body's center of mass, world axes"


def _observation(outline: SceneOutline, scene: Scene) -> Iterator[str]:
    for name, f in outline.outputs.items():
        shape = f.value_shape
        if 0 not in shape:
            size = f"[{', '.join(map(str, shape))}]" if shape else ""
            yield f"{name + size:<26} {_OUTPUTS.get(name, 'of a matter other than rigid bodies')}"
    for sensor in scene.sensors:
        kind = KINDS.get(sensor.kind)
        measures = f"[{numbers_of(sensor)}] {kind.unit}; frame: {kind.frame}" if kind else " not simulated"
        noise = f"; noise {sensor.noise:g}" if sensor.noise else ""
        cutoff = f"; cut at {sensor.cutoff:g}" if sensor.cutoff else ""
        yield f"sensor {sensor.name}: {sensor.kind} of {sensor.target_kind} {sensor.target}{measures}{noise}{cutoff}"


def _settings(outline: SceneOutline, scene: Scene) -> Iterator[str]:
    o = scene.options
    yield f"time step {o.timestep:g} s, integrator {o.integrator}"
    yield f"gravity ({', '.join(f'{x:g}' for x in o.gravity)}) m/s²"
    if not o.constraints:
        yield "constraints off"
    else:
        contacts = f"contacts with {o.cone} friction cones, impratio {o.impratio:g}" if o.contacts else "contacts off"
        limits = solver_limits(o)
        yield f"{contacts}; Newton, at most {limits.iterations} iterations, tolerance {limits.tolerance:g}"
        room = "at most" if o.max_contacts is not None else "room, at first, for"
        pairs, places = outline.model.npair, outline.model.max_contacts
        yield f"{pairs} pairs of shapes may touch, with {room} {places} contacts at a time"
        if o.contact_softening:
            yield f"contacts softened from {o.contact_softening:g} m on, in {o.softening_pass} pass(es)"
    if scene.medium.density or scene.medium.viscosity:
        yield f"medium {scene.medium.density:g} kg/m³, {scene.medium.viscosity:g} Pa·s"


def _ledger(scene: Scene, *, every: bool) -> Iterator[str]:
    counts = Counter(entry.status for entry in scene.ledger)
    yield ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status] or status != "assumed")
    for entry in scene.ledger:
        if every or entry.status in ("assumed", "unsupported"):
            yield str(entry)
