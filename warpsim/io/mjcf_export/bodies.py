"""Bodies, joints, shapes and sites of a scene → elements of MJCF."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np

from warpsim.io.mjcf_export.document import Document, add, softness
from warpsim.scene.description import MESH_KINDS, SHAPE_SIZES_USED, Body, Joint, Shape, Site


@dataclass(frozen=True)
class Inertial:
    """Mass properties of a body as they are simulated.

    Attributes:
        mass: kg.
        com: (3,) m, in the body's frame.
        inertia: (6,) kg·m² about the com in the body's axes: xx, yy, zz, xy, xz, yz.
    """

    mass: float
    com: np.ndarray
    inertia: np.ndarray


def add_bodies(document: Document, inertials: Mapping[str, Inertial], *, collide: bool) -> None:
    """The world's tree. `collide`: shapes collide by their bit masks, and not only in pairs that are listed."""
    scene = document.scene
    elements = document.bodies
    elements[None] = document.section("worldbody")
    joints: dict[str, list[Joint]] = defaultdict(list)
    for joint in scene.joints:
        joints[joint.body].append(joint)
    waiting = list(scene.bodies)
    while waiting:
        body = next(b for b in waiting if b.parent in elements)
        waiting.remove(body)
        elements[body.name] = _body(document, elements[body.parent], body, joints[body.name], inertials[body.name])
    for shape in scene.shapes:
        _shape(document, elements[shape.body], shape, collide)
    for site in scene.sites:
        _site(elements[site.body], site)
    for mesh in {shape.mesh for shape in scene.shapes if _writable(shape) and shape.mesh is not None}:
        made = scene.meshes[mesh]
        add(document.section("asset"), "mesh", name=mesh, vertex=made.vertices, face=made.faces, inertia="convex")


def _body(
    document: Document, parent: ElementTree.Element, body: Body, joints: list[Joint], inertial: Inertial
) -> ElementTree.Element:
    made = add(
        parent,
        "body",
        name=body.name,
        pos=body.position,
        quat=body.rotation,
        mocap=True if body.kinematic else None,
        gravcomp=body.gravity_compensation or None,
    )
    if body.kinematic:
        document.lost("body", body.name, "kinematic", "written as mocap: it stands where it starts")
        return made
    for joint in joints:
        _joint(document, made, joint)
    if inertial.mass > 0:
        add(made, "inertial", pos=inertial.com, mass=inertial.mass, fullinertia=inertial.inertia)
    return made


def _joint(document: Document, parent: ElementTree.Element, joint: Joint) -> None:
    single = joint.kind in ("hinge", "slide")
    limit = joint.limit
    rest = None
    if joint.stiffness and joint.rest is not None:
        if single:
            rest = float(joint.rest[0])
        else:
            document.lost("joint", joint.name, "rest", f"springs of {joint.kind} joints are slack at the reference")
    add(
        parent,
        "joint",
        name=joint.name,
        type=joint.kind,
        pos=joint.anchor if joint.kind != "free" else None,
        axis=joint.axis if single else None,
        ref=joint.reference if single and joint.reference else None,
        springref=rest if rest is not None or not single else (joint.reference or None),
        stiffness=joint.stiffness or None,
        damping=joint.damping or None,
        armature=joint.armature,
        frictionloss=joint.friction_loss or None,
        limited=limit is not None,
        range=limit,
        margin=joint.limit_margin or None,
        actuatorfrclimited=joint.actuator_force_limit is not None,
        actuatorfrcrange=joint.actuator_force_limit,
        actuatorgravcomp=joint.actuators_compensate or None,
        **softness(joint.limit_solref, joint.limit_solimp, "limit"),
        **softness(joint.friction_solref, joint.friction_solimp, "friction"),
    )


def _writable(shape: Shape) -> bool:
    return shape.kind not in ("cone", "heightfield")


def _shape(document: Document, parent: ElementTree.Element, shape: Shape, collide: bool) -> None:
    if not _writable(shape):
        document.lost("shape", shape.name, f"kind {shape.kind}", "MJCF has no such shape, or it is not written")
        return
    if shape.kind == "mesh" and shape.collides:
        document.lost("shape", shape.name, "kind mesh", "collides as its convex hull there")
    size = None if shape.kind in MESH_KINDS else shape.size[: SHAPE_SIZES_USED.get(shape.kind, 3)]
    if shape.kind == "plane":
        size = [0.0, 0.0, 1.0]
    if shape.kind in MESH_KINDS and not np.array_equal(shape.size, np.ones(3)):
        document.lost("shape", shape.name, "size", "the scale of a mesh is not written")
    touches = collide and shape.collides
    add(
        parent,
        "geom",
        name=shape.name,
        type="mesh" if shape.kind in MESH_KINDS else shape.kind,
        mesh=shape.mesh if shape.kind in MESH_KINDS else None,
        size=size,
        pos=shape.position,
        quat=shape.rotation,
        mass=0.0,
        contype=shape.contact_type if touches else 0,
        conaffinity=shape.contact_affinity if touches else 0,
        condim=shape.condim,
        friction=shape.friction,
        solmix=shape.solmix,
        priority=shape.priority or None,
        margin=shape.margin or None,
        gap=shape.gap or None,
        rgba=[*shape.color, 1.0],
        group=0 if shape.visible else 3,
        **softness(shape.solref, shape.solimp),
    )


def _site(parent: ElementTree.Element, site: Site) -> None:
    size = site.size if np.any(site.size) else None
    add(parent, "site", name=site.name, pos=site.position, quat=site.rotation, type=site.form, size=size)
