"""Volume, center and inertia of closed triangle meshes by summing signed tetrahedra (exact for polyhedra)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warpsim.core.errors import SceneError
from warpsim.scene import Scene, Shape


@dataclass
class MeshMass:
    """At density one: volume (m³), center (m), inertia about the center (m⁵: xx, yy, zz, xy, xz, yz)."""

    volume: float = 1.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros(6))


def polyhedron_mass(vertices: np.ndarray, faces: np.ndarray) -> MeshMass:
    """Mass properties of the solid inside a closed, outward-oriented surface.

    Args:
        vertices: (n, 3), m.
        faces: (m, 3) indices, counterclockwise seen from outside.
    """
    corners = np.asarray(vertices, np.float64)[np.asarray(faces)]
    six_volumes = np.einsum("fi,fi->f", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    volume = six_volumes.sum() / 6.0
    total = corners.sum(axis=1)
    first = np.einsum("f,fi->i", six_volumes, total) / 24.0
    # ∫ x xᵀ over a tetrahedron with one corner at the origin = V/20 (Σ cᵢcᵢᵀ + (Σ cᵢ)(Σ cᵢ)ᵀ)
    second = np.einsum("f,fki,fkj->ij", six_volumes, corners, corners) + np.einsum(
        "f,fi,fj->ij", six_volumes, total, total
    )
    second /= 120.0
    com = first / volume if volume else np.zeros(3)
    central = second - volume * np.outer(com, com)
    full = np.trace(central) * np.eye(3) - central
    inertia = np.array([full[0, 0], full[1, 1], full[2, 2], full[0, 1], full[0, 2], full[1, 2]])
    return MeshMass(float(volume), com, inertia)


def mesh_mass_properties(scene: Scene, shape: Shape) -> MeshMass:
    """Unit-density properties of a mesh or hull shape; neutral values for the others."""
    if shape.kind not in ("mesh", "hull") or shape.mass == 0.0 or shape.body is None:
        return MeshMass()
    mesh = scene.meshes[shape.mesh or ""]
    result = polyhedron_mass(mesh.vertices, mesh.faces)
    if not result.volume > 0.0:
        raise SceneError(
            f"shape {shape.name!r}: mesh {mesh.name!r} encloses no volume ({result.volume:.3g} m³); close it, turn its "
            "faces outward, or author the body's mass and inertia"
        )
    return result
