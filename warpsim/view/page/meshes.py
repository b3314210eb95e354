"""A triangle mesh that keeps its form as few bytes: shared corners, 16-bit positions, two bytes of normal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.view.items.triangles import Triangles
from warpsim.view.page.series import quantized


@dataclass(frozen=True, eq=False)
class PackedMesh:
    """Vertices that share position and normal are stored once."""

    low: np.ndarray
    high: np.ndarray
    """(3,): range of the positions, in the mesh's frame."""
    vertices: np.ndarray
    """(n, 3) uint16."""
    normals: np.ndarray
    """(n, 2) uint8, octahedral."""
    faces: np.ndarray
    """(m, 3) int32."""
    uvs: np.ndarray | None = None
    """(n, 2) uint16: texture coordinates within `uv_range`."""
    uv_range: tuple[np.ndarray, np.ndarray] | None = None

    def to_bytes(self) -> bytes:
        """Positions, normals, differences of indices, texture coordinates; each by its bytes' weights."""
        steps = np.diff(self.faces.reshape(-1), prepend=0).astype(np.int32)
        zigzag = ((steps << 1) ^ (steps >> 31)).view(np.uint32)
        parts = [(self.vertices.T >> shift).astype(np.uint8) for shift in (0, 8)]
        parts += [self.normals.T]
        parts += [(zigzag >> shift).astype(np.uint8) for shift in (0, 8, 16, 24)]
        if self.uvs is not None:
            parts += [(self.uvs.T >> shift).astype(np.uint8) for shift in (0, 8)]
        return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def pack_mesh(triangles: Triangles) -> PackedMesh:
    """Packs a mesh; the same triangles give the same bytes."""
    corners, normals = triangles.corners.reshape(-1, 3), triangles.normals.reshape(-1, 3)
    low, high = corners.min(axis=0), corners.max(axis=0)
    places, turns = quantized(corners, low, high), octahedral(normals)
    key = np.zeros(len(corners), dtype=np.uint64)
    for column in (*places.T, (turns[:, 0].astype(np.uint64) << np.uint64(8)) | turns[:, 1]):
        key = (key << np.uint64(16)) | column.astype(np.uint64)
    uvs, uv_range = None, None
    if triangles.uvs is not None:
        flat = triangles.uvs.reshape(-1, 2)
        uv_range = (flat.min(axis=0), flat.max(axis=0))
        uvs = quantized(flat, *uv_range)
        _, whole = np.unique(key, return_inverse=True)  # two keys of 64 bits would not fit into one
        key = (whole.reshape(-1).astype(np.uint64) << np.uint64(32)) | (
            (uvs[:, 0].astype(np.uint64) << np.uint64(16)) | uvs[:, 1].astype(np.uint64)
        )
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    # Vertices in the order of their first use: differences of indices stay small.
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    used = first[order]
    faces = rank[index.reshape(-1)].reshape(-1, 3).astype(np.int32)
    return PackedMesh(low, high, places[used], turns[used], faces, None if uvs is None else uvs[used], uv_range)


def octahedral(normals: np.ndarray) -> np.ndarray:
    """(n, 2) uint8 of unit vectors: the sphere unfolded onto a square through an octahedron (Meyer et al., 2010)."""
    flat = normals / np.abs(normals).sum(axis=1, keepdims=True)
    sign = np.where(flat[:, :2] < 0.0, -1.0, 1.0)
    folded = (1.0 - np.abs(flat[:, 1::-1])) * sign
    square = np.where(flat[:, 2:] < 0.0, folded, flat[:, :2])
    return np.rint((square * 0.5 + 0.5) * 255.0).astype(np.uint8)
