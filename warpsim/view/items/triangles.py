"""Triangle meshes to draw: corners with normals that are smooth except across creases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

CREASE = np.cos(np.radians(40.0))
"""Cosine of the angle between two faces above which the edge between them is drawn sharp."""


@dataclass(frozen=True, eq=False)
class Triangles:
    """A mesh without shared vertices, so that each corner has its own normal."""

    corners: np.ndarray
    """(m, 3, 3): position of each triangle's corners, in the mesh's own frame."""
    normals: np.ndarray
    """(m, 3, 3): unit normals at the corners."""
    uvs: np.ndarray | None = None
    """(m, 3, 2): texture coordinates of the corners."""

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest coordinates."""
        points = self.corners.reshape(-1, 3)
        return points.min(axis=0), points.max(axis=0)

    def to_warp(self, device: wp.Device) -> wp.Mesh:
        """The mesh on a device. Normals travel as Warp's per-vertex velocities, which its queries can interpolate."""
        return wp.Mesh(
            points=wp.array(self.corners.reshape(-1, 3), dtype=wp.vec3, device=device),
            velocities=wp.array(self.normals.reshape(-1, 3), dtype=wp.vec3, device=device),
            indices=wp.array(np.arange(3 * len(self.corners)), dtype=wp.int32, device=device),
        )


def make_triangles(vertices: np.ndarray, faces: np.ndarray, uvs: np.ndarray | None = None) -> Triangles:
    """Gives a mesh its normals.

    Args:
        vertices: (n, 3).
        faces: (m, 3) vertex indices; faces without area are left out.
        uvs: (m, 3, 2) texture coordinates of the faces' corners.
    """
    _, merged = np.unique(vertices, axis=0, return_inverse=True)  # split vertices would make every edge a crease
    corners = vertices[faces]
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    solid = np.linalg.norm(areas, axis=1) > 0.0
    corners, areas = corners[solid], areas[solid]
    normals = _corner_normals(merged.reshape(-1)[faces[solid]], areas)
    return Triangles(corners, normals, None if uvs is None else uvs[solid])


def _corner_normals(faces: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """(m, 3, 3): at each corner, the area-weighted mean over the faces around its vertex that bend less than a crease.

    Args:
        faces: (m, 3) vertex indices, equal where positions are.
        areas: (m, 3) face normals, twice the area long.
    """
    vertex = faces.reshape(-1)
    order = np.argsort(vertex, kind="stable")
    starts = np.searchsorted(vertex[order], vertex)
    counts = np.bincount(vertex)[vertex]
    # Every pair (corner, another corner at its vertex), as two flat lists of corners.
    first = np.repeat(np.arange(len(vertex)), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[np.repeat(starts, counts) + within]
    unit = areas / np.linalg.norm(areas, axis=1, keepdims=True)
    smooth = np.einsum("ij,ij->i", unit[first // 3], unit[second // 3]) > CREASE
    sums = np.stack(
        [np.bincount(first, weights=smooth * areas[second // 3, axis], minlength=len(vertex)) for axis in range(3)],
        axis=1,
    )
    return (sums / np.linalg.norm(sums, axis=1, keepdims=True)).reshape(-1, 3, 3)
