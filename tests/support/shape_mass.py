"""Closed forms for the mass, center and inertia of a scene's bodies: an oracle that shares no code with the package."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation


def matrix(quaternion) -> np.ndarray:
    return Rotation.from_quat(np.asarray(quaternion), scalar_first=True).as_matrix()


def solid(kind: str, size, vertices=None, faces=None):
    """(volume, center, inertia about the center) of a solid of density 1 in its own frame."""
    a, b, c = (float(s) for s in size)
    if kind == "sphere":
        volume = 4 / 3 * np.pi * a**3
        return volume, np.zeros(3), volume * 0.4 * a**2 * np.eye(3)
    if kind == "box":
        volume = 8 * a * b * c
        return volume, np.zeros(3), volume / 3 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    if kind == "ellipsoid":
        volume = 4 / 3 * np.pi * a * b * c
        return volume, np.zeros(3), volume / 5 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    if kind == "cylinder":
        volume = 2 * np.pi * a**2 * b
        across = volume * (a**2 / 4 + b**2 / 3)
        return volume, np.zeros(3), np.diag([across, across, volume * a**2 / 2])
    if kind == "capsule":
        rod, ball = 2 * np.pi * a**2 * b, 4 / 3 * np.pi * a**3
        # Half a ball has its center 3a/8 from the cut and 83/320·m·a² across it; the two halves sit at ±(b + 3a/8).
        across = rod * (a**2 / 4 + b**2 / 3) + ball * (83 / 320 * a**2 + (b + 3 / 8 * a) ** 2)
        return rod + ball, np.zeros(3), np.diag([across, across, rod * a**2 / 2 + ball * 0.4 * a**2])
    if kind == "cone":
        h = 2 * b
        volume = np.pi * a**2 * h / 3
        across = volume * (3 / 20 * a**2 + 3 / 80 * h**2)
        return volume, np.array([0.0, 0.0, h / 4 - b]), np.diag([across, across, 0.3 * volume * a**2])
    if kind == "hull":
        hull = ConvexHull(vertices)
        faces = _outward(vertices, hull)
    if kind in ("mesh", "hull"):
        return tetrahedra(np.asarray(vertices) * np.array([a, b, c]), np.asarray(faces))
    return 0.0, np.zeros(3), np.zeros((3, 3))


def _outward(vertices, hull):
    faces = hull.simplices.copy()
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flip = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0
    faces[flip] = faces[flip][:, ::-1]
    return faces


def tetrahedra(vertices, faces):
    """Sums the tetrahedra from the origin to each face: ∫xᵢxⱼ dV = det/120 (Σxᵢ Σxⱼ + Σ xᵢxⱼ)."""
    corners = vertices[faces]
    det = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    volume = det.sum() / 6
    total = corners.sum(axis=1)
    center = (det[:, None] * total).sum(axis=0) / 24 / volume
    second = np.einsum("f,fi,fj->ij", det, total, total) + np.einsum("f,fki,fkj->ij", det, corners, corners)
    second = second / 120 - volume * np.outer(center, center)
    return volume, center, np.trace(second) * np.eye(3) - second


def shape_mass(scene, shape):
    """(mass, center, inertia) of a shape in its body's frame; inertia about its own center."""
    mesh = scene.meshes[shape.mesh] if shape.mesh else None
    volume, center, inertia = solid(shape.kind, shape.size, *((mesh.vertices, mesh.faces) if mesh else ()))
    if volume == 0:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    density = shape.density if shape.mass is None else shape.mass / volume
    turn = matrix(shape.rotation)
    return density * volume, shape.position + turn @ center, density * turn @ inertia @ turn.T


def body_mass(scene, body):
    """(mass, com, inertia about com in body axes) after the rules of `Body`."""
    parts = [shape_mass(scene, shape) for shape in scene.shapes if shape.body == body.name]
    total = sum(mass for mass, _, _ in parts)
    mass = total if body.mass is None else body.mass
    com, inertia = body.com, body.inertia
    shapes_com = sum((m * c for m, c, _ in parts), np.zeros(3)) / total if total > 0 else np.zeros(3)
    if com is None:
        com = shapes_com
    if inertia is None:
        inertia = np.zeros((3, 3))
        for m, c, i in parts:
            arm = c - com
            inertia = inertia + i + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        inertia = inertia * (mass / total if total > 0 else 1.0)
    return mass, com, inertia
