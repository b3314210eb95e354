"""`export_scene`: a `Scene` (from MJCF, URDF or Python) → a USD stage in meters and kilograms, z up."""

from __future__ import annotations

import numpy as np
from pxr import Usd

from warpsim.io.usd import author
from warpsim.io.usd.export.bodies import add_body, add_filters, add_shape, filter_parents, initial_pose
from warpsim.io.usd.export.joints import (
    add_actuator,
    add_drive,
    add_equality,
    add_initial_state,
    add_joints,
    add_tendon,
)
from warpsim.io.usd.export.state import Export
from warpsim.io.usd.sensors import VOLUME_SENSORS
from warpsim.scene import Scene
from warpsim.scene.ledger import LedgerEntry
from warpsim.scene.matters import matter_kind


def export_scene(scene: Scene) -> tuple[Usd.Stage, list[LedgerEntry]]:
    """Writes a scene as USD.

    Bodies are nested as in the tree, joints under their child bodies. Reading the stage again gives the same scene,
    with prim paths for names, to the precision of UsdPhysics' float32 attributes.

    Args:
        scene: A valid scene.

    Returns:
        The stage in memory (save it with `author.save`), and what it could not hold.
    """
    export = build_export(scene)
    return export.stage, export.notes


def build_export(scene: Scene) -> Export:
    """The same, with the prim that each item of the scene became."""
    stage = author.new_stage(documentation=f"Converted from {scene.name} by warpsim.")
    export = Export(scene, stage)
    _physics_scene(export)
    joints = {body.name: [joint for joint in scene.joints if joint.body == body.name] for body in scene.bodies}
    for body in scene.bodies:
        add_body(export, body, joints[body.name])
    for body in scene.bodies:
        add_joints(export, body, joints[body.name])
    for shape in scene.shapes:
        add_shape(export, shape)
    for site in scene.sites:
        parent = export.body(site.body) or export.world
        name = export.name(parent, site.name)
        export.prims[("site", site.name)] = author.site(parent, name, position=site.position, rotation=site.rotation)
    for matter in scene.matters:
        if not matter_kind(matter.kind).write(matter, stage, export.prims):
            export.lost("matter", matter.name, matter.kind, "its kind writes no prims")
    for tendon in scene.tendons:
        add_tendon(export, tendon)
    for actuator in scene.actuators:
        add_actuator(export, actuator)
    for equality in scene.equalities:
        add_equality(export, equality)
    for drive in scene.drives:
        add_drive(export, drive)
    _sensors(export)
    add_filters(export)
    filter_parents(export)
    _start(export, joints)
    _note_losses(export)
    return export


def _physics_scene(export: Export) -> None:
    options, medium = export.scene.options, export.scene.medium
    strength = float(np.linalg.norm(options.gravity))
    attributes = {
        "mjc:option:timestep": options.timestep,
        "mjc:option:integrator": options.integrator if options.integrator != "euler" else None,
        "mjc:option:cone": options.cone,
        "mjc:flag:filterparent": export.scene.filter_parent,
        "mjc:option:impratio": options.impratio if options.impratio != 1.0 else None,
        "mjc:option:iterations": options.solver_iterations,
        "mjc:option:tolerance": options.solver_tolerance,
        "warpsim:impacts": options.impacts or None,
        "warpsim:impactSpeed": options.impact_speed if options.impacts else None,
        "warpsim:contactSoftening": options.contact_softening or None,
        "warpsim:softeningPass": options.softening_pass if options.contact_softening else None,
        "warpsim:maxContacts": options.max_contacts,
        "mjc:option:density": medium.density or None,
        "mjc:option:viscosity": medium.viscosity or None,
        "mjc:option:wind": medium.wind if np.any(medium.wind) else None,
    }
    direction = options.gravity / strength if strength else None
    author.physics_scene(export.stage, gravity=strength, direction=direction, attributes=attributes)


def _sensors(export: Export) -> None:
    for sensor in export.scene.sensors:
        if sensor.kind in VOLUME_SENSORS:
            export.lost("sensor", sensor.name, sensor.kind, "sites have no volume, and sensors no slots, in USD")
            continue
        kind = "body" if sensor.target_kind == "inertia" else sensor.target_kind
        target = export.prims.get((kind, sensor.target))
        if kind and target is None:
            export.lost("sensor", sensor.name, "target", f"its {kind} is not in the file")
            continue
        reference_kind = "body" if sensor.reference_kind == "inertia" else sensor.reference_kind
        author.sensor(
            export.world,
            export.name(export.world, sensor.name),
            sensor.kind,
            target,
            target_kind=sensor.target_kind,
            reference=export.prims.get((reference_kind, sensor.reference)) if sensor.reference else None,
            reference_kind=sensor.reference_kind if sensor.reference else None,
            noise=sensor.noise,
            cutoff=sensor.cutoff,
        )


def _start(export: Export, joints: dict) -> None:
    """Moves the bodies from their zero poses to where the rollout starts."""
    for body in export.scene.bodies:
        pose = initial_pose(body, joints[body.name])
        author.move(export.prims[("body", body.name)], position=pose.position, rotation=pose.rotation)
        for joint in joints[body.name]:
            add_initial_state(export, joint)


def _note_losses(export: Export) -> None:
    scene = export.scene
    for override in scene.contact_overrides:
        export.lost("pair", f"{override.a} and {override.b}", "contact_overrides", "USD mixes materials, always")
    for joint in scene.joints:
        if joint.actuators_compensate and joint.actuator_force_limit is not None:
            export.lost("joint", joint.name, "actuators_compensate", "there is no attribute for it")
    for field in ("implicit_damping", "limit_timeconst", "constraints", "contacts"):
        if not getattr(scene.options, field):
            export.lost("options", "options", field, "there is no attribute for it")
