"""`mjcf_of_scene`: a scene as MJCF text, so that results leave for MuJoCo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import numpy as np

from warpsim.io.mjcf_export.actuation import add_actuator, add_drive, add_equality, add_sensor, add_tendon
from warpsim.io.mjcf_export.bodies import Inertial, add_bodies
from warpsim.io.mjcf_export.document import Document, add, softness
from warpsim.scene.constraints import ContactOverride
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE, Joint, Scene
from warpsim.scene.ledger import LedgerEntry

_CAPITALS = {"euler": "Euler", "rk4": "RK4", "implicitfast": "implicitfast"}


def mjcf_of_scene(
    scene: Scene, inertials: Mapping[str, Inertial], pairs: Sequence[ContactOverride] | None = None
) -> tuple[str, list[LedgerEntry]]:
    """Writes a scene as MJCF.

    Names are the scene's: of a stage, prim paths. The keyframe "start" holds the start state.

    Args:
        scene: A valid scene.
        inertials: Body name → its mass properties.
        pairs: All pairs that collide, where MuJoCo would mix their parameters otherwise; None: it mixes them the same.

    Returns:
        The text, and what it could not hold.
    """
    document = Document(scene)
    document.root.set("model", scene.name)
    _options(document)
    add_bodies(document, inertials, collide=pairs is None)
    _contacts(document, pairs)
    for tendon in scene.tendons:
        add_tendon(document, tendon)
    for actuator in scene.actuators:
        add_actuator(document, actuator)
    drives = [drive for drive in scene.drives if add_drive(document, drive)]
    for equality in scene.equalities:
        add_equality(document, equality)
    for sensor in scene.sensors:
        add_sensor(document, sensor)
    _keyframe(document, [0.0] * len(scene.actuators) + [drive.target for drive in drives])
    for matter in scene.matters:
        document.lost("matter", matter.name, matter.kind, "only rigid bodies are written")
    ElementTree.indent(document.root)
    return ElementTree.tostring(document.root, encoding="unicode") + "\n", document.notes


def _options(document: Document) -> None:
    options, medium = document.scene.options, document.scene.medium
    add(
        document.root,
        "compiler",
        angle="radian",
        autolimits=False,
        inertiafromgeom="false",
        balanceinertia=False,
        boundmass=0.0,
    )
    made = add(
        document.root,
        "option",
        timestep=options.timestep,
        gravity=options.gravity,
        integrator=_CAPITALS[options.integrator],
        cone=options.cone,
        impratio=options.impratio,
        iterations=options.solver_iterations,
        tolerance=options.solver_tolerance,
        density=medium.density or None,
        viscosity=medium.viscosity or None,
        wind=medium.wind if np.any(medium.wind) else None,
    )
    flags = {
        "filterparent": document.scene.filter_parent,
        "eulerdamp": options.implicit_damping,
        "refsafe": options.limit_timeconst,
        "constraint": options.constraints,
        "contact": options.contacts,
    }
    disabled: dict[str, object] = {name: "disable" for name, kept in flags.items() if not kept}
    if disabled:
        add(made, "flag", **disabled)
    for field in ("impacts", "contact_softening"):
        if getattr(options, field):
            document.lost("options", "options", field, "MuJoCo's contacts are compliant")


def _contacts(document: Document, pairs: Sequence[ContactOverride] | None) -> None:
    scene, section = document.scene, document.section("contact")
    for pair in scene.contact_overrides if pairs is None else pairs:
        add(
            section,
            "pair",
            geom1=pair.a,
            geom2=pair.b,
            condim=pair.condim,
            friction=pair.friction,
            margin=pair.margin,
            gap=pair.gap,
            solreffriction=pair.solref_friction if np.any(pair.solref_friction) else None,
            **softness(pair.solref, pair.solimp),
        )
    if pairs is None:
        for bodies in sorted(sorted(pair) for pair in scene.excluded_bodies):
            add(section, "exclude", body1=bodies[0] or "world", body2=bodies[-1] or "world")


def _keyframe(document: Document, controls: list[float]) -> None:
    scene = document.scene
    kinematic = {body.name for body in scene.bodies if body.kinematic}
    joints = [joint for joint in scene.joints if joint.body not in kinematic]
    q = [x for joint in joints for x in _start(scene, joint)]
    qd = [
        x
        for joint in joints
        for x in (np.zeros(JOINT_DOF_SIZE[joint.kind]) if joint.initial_qd is None else joint.initial_qd)
    ]
    activation = [a.initial_activation for a in scene.actuators if a.dynamics != "none"]
    add(
        document.section("keyframe"),
        "key",
        name="start",
        qpos=q or None,
        qvel=qd or None,
        act=activation or None,
        ctrl=controls or None,
    )


def _start(scene: Scene, joint: Joint) -> np.ndarray:
    if joint.initial_q is not None:
        return joint.initial_q
    if joint.kind == "free":
        body = next(body for body in scene.bodies if body.name == joint.body)
        return np.concatenate([body.position, body.rotation])
    start = np.zeros(JOINT_Q_SIZE[joint.kind])
    start[0] = 1.0 if joint.kind == "ball" else joint.reference
    return start
