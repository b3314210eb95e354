"""Bodies, shapes, materials and sites of a scene → prims."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Usd, UsdGeom, UsdPhysics

from warpsim.core.numpy_quaternions import matrix_to_quat, quat_about, unit
from warpsim.io.usd import author
from warpsim.io.usd.export.state import Export
from warpsim.io.usd.frames import IDENTITY, Pose
from warpsim.scene import Body, Joint, Mesh, Shape
from warpsim.scene.description import MESH_KINDS
from warpsim.scene.fixed_groups import pairs_with_parents


def exponential(joint: Joint, q: np.ndarray) -> Pose:
    """A joint's motion by q, in the child's frame."""
    if joint.kind == "slide":
        return Pose(joint.axis * q[0], IDENTITY.rotation)
    turn = quat_about(unit(joint.axis), q[0]) if joint.kind == "hinge" else unit(np.asarray(q, dtype=float))
    there = Pose(np.asarray(joint.anchor, dtype=float), IDENTITY.rotation)
    return there @ Pose(np.zeros(3), turn) @ there.inverse()


def reference_q(joint: Joint) -> np.ndarray:
    """Coordinates at which the body stands as its `position` and `rotation` say."""
    return np.array([1.0, 0.0, 0.0, 0.0]) if joint.kind == "ball" else np.array([joint.reference])


def zero_pose(body: Body, joints: list[Joint]) -> Pose:
    """The body's pose in its parent's frame with every coordinate zero, as USD's joint frames have it.

    The scene's motion is ∏ Eᵢ(qᵢ − refᵢ) after the reference pose; USD's ∏ Eᵢ(qᵢ) after the zero pose, so the axes of
    all but the last joint turn too: see `zero_frame`.
    """
    pose = Pose(np.asarray(body.position, dtype=float), unit(np.asarray(body.rotation, dtype=float)))
    for joint in joints:
        if joint.kind != "ball":
            pose = pose @ exponential(joint, -reference_q(joint))
    return pose


def zero_frame(joints: list[Joint], place: int) -> Pose:
    """Turns the anchor and axis of one joint of a compound from the reference pose to the zero pose."""
    pose = IDENTITY
    for joint in joints[place + 1 :]:
        if joint.kind != "ball":
            pose = pose @ exponential(joint, -reference_q(joint))
    return pose.inverse()


def initial_pose(body: Body, joints: list[Joint]) -> Pose:
    """The body's pose in its parent's frame at the start."""
    pose = Pose(np.asarray(body.position, dtype=float), unit(np.asarray(body.rotation, dtype=float)))
    for joint in joints:
        if joint.kind == "free":
            return pose if joint.initial_q is None else Pose(joint.initial_q[:3], unit(joint.initial_q[3:]))
        if joint.initial_q is not None:
            start = joint.initial_q if joint.kind == "ball" else joint.initial_q - joint.reference
            pose = pose @ exponential(joint, start)
    return pose


def add_body(export: Export, body: Body, joints: list[Joint]) -> None:
    """Adds a body prim at its zero pose, under its parent's prim."""
    scene = export.scene
    parent = export.body(body.parent) or export.world
    pose = zero_pose(body, joints) if not any(joint.kind == "free" for joint in joints) else initial_pose(body, joints)
    moments, axes = (None, None) if body.inertia is None else _principal(body.inertia)
    attributes: dict[str, Any] = {}
    if body.gravity_compensation:
        attributes["mjc:gravcomp"] = body.gravity_compensation
    is_root = body.parent is None and any(other.parent == body.name for other in scene.bodies)
    prim = author.body(
        parent,
        export.name(parent, body.name),
        position=pose.position,
        rotation=pose.rotation,
        mass=body.mass,
        center_of_mass=body.com,
        inertia=moments,
        principal_axes=axes,
        kinematic=body.kinematic,
        articulation_root=is_root and bool(joints),
        attributes=attributes,
    )
    if body.inertia is not None:
        i = np.asarray(body.inertia)
        six = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
        author.set_attribute(prim, "newton:inertia", six)  # exact, where the others are float32
    export.prims[("body", body.name)] = prim


def _principal(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    moments, axes = np.linalg.eigh(np.asarray(inertia, dtype=float))
    if np.linalg.det(axes) < 0:
        axes[:, 0] = -axes[:, 0]
    return np.maximum(moments, 0.0), matrix_to_quat(axes)


def add_shape(export: Export, shape: Shape) -> None:
    """Adds a collider under its body, with its material and contact attributes; convex pieces are in their whole's."""
    if shape.piece_of is not None:
        return
    collides = shape.collides or shape.decomposition is not None
    parent = export.body(shape.body) or export.world
    options = {
        "position": shape.position,
        "rotation": shape.rotation,
        "color": shape.color,
        "collides": collides,
        "mass": shape.mass or None,
        "density": shape.density if shape.mass is None and shape.body is not None else None,
    }
    name = export.name(parent, shape.name)
    prim = _geometry(export, parent, name, shape, options)
    if prim is None:
        return
    if collides:
        _contact(export, prim, shape)
    elif shape.body is not None and shape.mass != 0 and _needs_shapes(export, shape.body):
        export.lost("shape", shape.name, "mass", "it weighs but does not collide, and its body has no mass of its own")
    if not shape.visible:  # viewers show colliders of purpose guide on demand, and never what is invisible
        name, value = ("purpose", UsdGeom.Tokens.guide) if collides else ("visibility", UsdGeom.Tokens.invisible)
        author.set_attribute(prim, name, value)
    export.prims[("shape", shape.name)] = prim


def _needs_shapes(export: Export, body_name: str) -> bool:
    body = next(body for body in export.scene.bodies if body.name == body_name)
    return body.mass is None or body.com is None or body.inertia is None


def _geometry(export: Export, parent: Usd.Prim, name: str, shape: Shape, options: dict[str, Any]) -> Usd.Prim | None:
    a, b, _ = shape.size
    if shape.kind == "plane":
        for key in ("mass", "density"):
            options.pop(key)
        return author.ground(parent, name, **options)
    if shape.kind == "box":
        return author.box(parent, name, shape.size, **options)
    if shape.kind == "sphere":
        return author.sphere(parent, name, a, **options)
    if shape.kind == "ellipsoid":
        points, faces = _round_mesh()
        attributes = {"warpsim:ellipsoid": shape.size} if shape.collides else None
        return author.mesh(parent, name, points * shape.size, faces, attributes=attributes, **options)
    if shape.kind in ("capsule", "cylinder", "cone"):
        return getattr(author, shape.kind)(parent, name, a, 2 * b, **options)
    if shape.kind in MESH_KINDS:
        mesh = export.scene.meshes[str(shape.mesh)]
        approximation = "convexHull" if shape.kind == "hull" else "sdf"
        if shape.decomposition is not None:
            approximation = "convexDecomposition"
        points = mesh.vertices * shape.size
        if shape.kind == "hull" and shape.collides:
            options["attributes"] = _hull_attributes(mesh)
        if shape.kind == "heightfield" and mesh.prisms is not None:
            export.lost("shape", shape.name, "prisms", "USD has no height fields; it collides as a smooth surface")
        return author.mesh(parent, name, points, mesh.faces, approximation=approximation, **options)
    export.lost("shape", shape.name, shape.kind, "USD has no such collider")
    return None


def _hull_attributes(mesh: Mesh) -> dict[str, np.ndarray]:
    """What a mesh says of its hull."""
    said = {"warpsim:hullVertices": mesh.hull_vertices}
    if mesh.hull_faces is not None and mesh.hull_normals is not None:
        said |= {"warpsim:hullFaces": mesh.hull_faces, "warpsim:hullNormals": mesh.hull_normals.reshape(-1)}
    return {name: value for name, value in said.items() if value is not None}


def _round_mesh(rings: int = 9, sides: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """(points, triangles) of a unit sphere: what other engines see of an ellipsoid."""
    heights = np.linspace(0, np.pi, rings)[1:-1, None]
    turns = np.linspace(0, 2 * np.pi, sides, endpoint=False)[None]
    belt = [np.sin(heights) * np.cos(turns), np.sin(heights) * np.sin(turns), np.cos(heights) + 0 * turns]
    points = np.concatenate([[[0, 0, 1.0]], np.stack(belt, axis=-1).reshape(-1, 3), [[0, 0, -1.0]]])
    k, last = np.arange(sides), len(points) - 1
    n = (k + 1) % sides
    faces = [
        np.stack([0 * k, 1 + k, 1 + n], axis=1),
        np.stack([last + 0 * k, last - sides + n, last - sides + k], axis=1),
    ]
    for first in range(1, 1 + (rings - 3) * sides, sides):
        a, b = first + k, first + n
        faces += [np.stack([a, a + sides, b + sides], axis=1), np.stack([a, b + sides, b], axis=1)]
    return points, np.concatenate(faces)


def _contact(export: Export, prim: Usd.Prim, shape: Shape) -> None:
    author.bind(prim, _material(export, shape))
    values = {
        "mjc:condim": shape.condim,
        "mjc:priority": shape.priority or None,
        "mjc:solmix": shape.solmix if shape.solmix != 1.0 else None,
        "mjc:solref": shape.solref,
        "mjc:solimp": shape.solimp,
        "mjc:contype": shape.contact_type if shape.contact_type != 1 else None,
        "mjc:conaffinity": shape.contact_affinity if shape.contact_affinity != 1 else None,
        "newton:contactMargin": shape.margin or None,
        "newton:contactGap": shape.gap or None,
        "newton:sdfMaxResolution": shape.sdf_resolution if shape.kind in ("mesh", "heightfield") else None,
    }
    if shape.decomposition is not None:
        del values["newton:sdfMaxResolution"]
        values |= {
            "warpsim:convexTolerance": shape.decomposition.tolerance,
            "physxConvexDecompositionCollision:maxConvexHulls": shape.decomposition.max_pieces,
            "newton:maxHullVertices": shape.decomposition.max_vertices,
        }
    author.set_attributes(prim, values)


def _material(export: Export, shape: Shape) -> Usd.Prim:
    """One material prim per set of values."""
    key = ("material", repr((*shape.friction, shape.restitution, shape.friction_combine)))
    if key not in export.prims:
        looks = export.prims.get(("scope", "Materials")) or author.frame(export.world, "Materials")
        export.prims[("scope", "Materials")] = looks
        sliding, torsional, rolling = shape.friction
        export.prims[key] = author.material(
            looks,
            export.name(looks, "Material"),
            friction=sliding,
            restitution=shape.restitution or None,
            attributes={
                "newton:torsionalFriction": torsional,
                "newton:rollingFriction": rolling,
                "physxMaterial:frictionCombineMode": shape.friction_combine,
            },
        )
    return export.prims[key]


def add_filters(export: Export) -> None:
    """Excluded pairs of bodies and shapes as filtered pairs."""
    for kind, pairs in (("body", export.scene.excluded_bodies), ("shape", export.scene.excluded_pairs)):
        for pair in sorted(map(sorted, pairs)):
            prims = [export.prims.get((kind, name)) for name in pair]
            if len(prims) == 2 and all(prims):
                author.filter_pairs(prims[0], prims[1])
            elif kind == "body" and len(pair) == 2:
                export.lost("pair", " and ".join(pair), "excluded_bodies", "USD filters no body from the whole world")


def mark_joint_collisions(export: Export, prim: Usd.Prim, a: str | None, b: str | None) -> None:
    """USD keeps jointed bodies apart unless told otherwise; so does the scene's `filter_parent`."""
    excluded = a is None or b is None or frozenset((a, b)) in export.scene.excluded_bodies
    if not export.scene.filter_parent and not excluded:
        UsdPhysics.Joint(prim).CreateCollisionEnabledAttr(True)


def filter_parents(export: Export) -> None:
    """`filter_parent` sees bodies that are fixed together as one; joints alone would not filter those pairs."""
    scene = export.scene
    if not scene.filter_parent:
        return
    jointed = {frozenset((body.name, body.parent)) for body in scene.bodies}
    for pair in sorted(map(sorted, pairs_with_parents(scene) - jointed)):
        author.filter_pairs(*(export.prims[("body", name)] for name in pair))
