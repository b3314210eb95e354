"""Which discrete choices a contact rests on, told from its numbers and from plain geometry, never from a gradient.

A contact is a smooth function of poses and sizes only while these choices stay: a difference that straddles a change
of one measures a jump or a crease, where no derivative exists.
"""

from __future__ import annotations

import numpy as np

from warpsim.collision.contacts import PairTable
from warpsim.scene.description import Scene


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Rotates vectors (n, 3) by unit quaternions (n, 4)."""
    u = q[:, 1:]
    t = 2.0 * np.cross(u, v)
    return v + q[:, :1] * t + np.cross(u, t)


def region(kind: str, size: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(n,) number of the region of a shape's distance field in which points (n, 3) of its frame lie.

    Between regions the field has a crease: its value, its gradient, or the gradient's derivative jumps.
    """
    signs = ((x > 0) * [1, 2, 4]).sum(1)
    if kind == "capsule":
        return (x[:, 2] > size[:, 1]) * 2 + (x[:, 2] < -size[:, 1])
    if kind == "box":
        beyond = np.abs(x) - size
        outside = (beyond > 0).any(1)
        deepest = 8 * beyond.argmax(1) + signs // 2 ** beyond.argmax(1) % 2
        return np.where(outside, 100 + 10 * ((beyond > 0) * [1, 2, 4]).sum(1) + signs, deepest)
    if kind in ("cylinder", "cone"):
        radius, half = size[:, 0], size[:, 1]
        rho = np.hypot(x[:, 0], x[:, 1])
        if kind == "cylinder":
            side, cap = rho - radius, np.abs(x[:, 2]) - half
            return np.where((side > 0) & (cap > 0), 0, np.where(side > cap, 1, 2)) * 2 + (x[:, 2] > 0)
        return _cone_region(radius, half, rho, x[:, 2])
    if kind == "ellipsoid":
        return signs
    return np.zeros(len(x), int)


def _cone_region(radius: np.ndarray, half: np.ndarray, rho: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Apex, side, rim, base, and which of side and base is nearer."""
    slant = np.hypot(radius, 2 * half)
    side = (2 * half * rho + radius * (z - half)) / slant
    along = (radius * rho - 2 * half * (z - half)) / slant
    base = -half - z
    to_side = np.hypot(side, np.maximum(along - slant, 0) + np.minimum(along, 0))
    to_base = np.hypot(np.maximum(rho - radius, 0), base)
    inside = (side <= 0) & (base <= 0)
    rim = (along > slant) & (rho > radius)  # where side and base are equally near
    nearer = np.where(inside, side > base, (to_base < to_side) & ~rim)
    return inside + 2 * nearer + 4 * (along < 0) + 8 * (along > slant) + 16 * (rho > radius)


def field_regions(scene: Scene, table: PairTable, pose, found) -> np.ndarray:
    """(n, places) regions in which contact points lie, for pairs that meet through a distance field; else zeros.

    Args:
        scene: Two shapes.
        table: Their pair.
        pose: (n, 2, …) position, rotation and size.
        found: Contacts at this pose.
    """
    out = np.zeros(found.feature.shape, np.int64)
    if table.ranges[0][0].name != "field":
        return out
    position, rotation, size = pose
    grids = table.geometry.grids
    for place in range(out.shape[1]):
        for holder, other in ((0, 1), (1, 0)):
            shape = scene.shapes[other]
            chosen = (found.count > place) & (found.feature[:, place] % 2 == holder)
            normal = found.frame[chosen, place, 0] * (1 if holder else -1)
            radius = size[chosen, holder, 0] * (scene.shapes[holder].kind in ("sphere", "capsule"))
            x = found.point[chosen, place] + normal * (radius + 0.5 * found.distance[chosen, place])[:, None]
            local = rotate(rotation[chosen, other] * [1, -1, -1, -1], x - position[chosen, other])
            if shape.kind in ("mesh", "heightfield"):
                cells = (local / size[chosen, other, :1] - grids.origin.numpy()[other]) / grids.spacing.numpy()[other]
                last = grids.dims.numpy()[other] - 2
                out[chosen, place] = ((cells < 1) * [1, 2, 4] + (cells > last) * [8, 16, 32]).sum(1)
            elif shape.kind == "hull":
                out[chosen, place] = _hull_face(table, other, size[chosen, other, :1], local)
            else:
                out[chosen, place] = region(shape.kind, size[chosen, other], local)
    return out


def _hull_face(table: PairTable, shape: int, scale: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The face of a hull whose plane lies furthest below each point."""
    hulls = table.geometry.hulls
    faces = slice(*hulls.face_start.numpy()[shape : shape + 2])
    normal = hulls.face_normal.numpy()[faces]
    corner = hulls.vertex.numpy()[hulls.vertex_start.numpy()[shape] + hulls.face_vertex.numpy()[faces, 0]]
    return (x @ normal.T - scale * (normal * corner).sum(1)).argmax(1)


def same_choices(first, second, regions) -> np.ndarray:
    """(n,) whether two sets of contacts rest on the same choices.

    These are: how many contacts, between which features, in which regions of a field, by which case of the rule for
    tangents (world y, or z where the normal is within 60° of y), and at which of several equally good normals.

    Args:
        first: Contacts.
        second: Contacts at a pose nearby.
        regions: Regions of both.
    """
    active = np.arange(first.feature.shape[1])[None] < first.count[:, None]
    normals = first.frame[:, :, 0], second.frame[:, :, 0]
    with np.errstate(invalid="ignore"):
        tangents = (np.abs(normals[0][..., 1]) < 0.5) == (np.abs(normals[1][..., 1]) < 0.5)
        alike = (first.feature == second.feature) & (regions[0] == regions[1]) & tangents
        alike &= np.linalg.norm(normals[0] - normals[1], axis=-1) < 1e-3  # else the choice is about to flip
    return (first.count == second.count) & (alike | ~active).all(1)


def _constraints(kind: str, feature: np.ndarray) -> np.ndarray:
    """How many equations a convex shape's feature puts on the normal: 2 a face, 1 an edge or a straight side."""
    if kind == "box":
        return sum(((feature // 3**k) % 3 == 1).astype(int) for k in range(3))
    if kind == "hull":
        return feature % 3
    if kind in ("cylinder", "cone"):
        return np.where(feature == 0, 1, np.where(feature <= 2, 2, 0))
    return ((feature == 1) & (kind == "capsule")).astype(int)


def parallel(scene: Scene, table: PairTable, found) -> np.ndarray:
    """(n,) whether a face meets an edge, a side or a face at one point: convex shapes parallel to within rounding.

    Such shapes touch along a line or an area, of which the contact is some point: it has no derivative.
    """
    if table.ranges[0][0].name != "convex":
        return np.zeros(len(found.count), bool)
    active = np.arange(found.feature.shape[1])[None] < found.count[:, None]
    first = _constraints(scene.shapes[0].kind, (found.feature >> 2) & 0x3FFFFFFF)
    second = _constraints(scene.shapes[1].kind, found.feature >> 32)
    single = (found.feature & 3) == 0
    return (active & single & (np.maximum(first, second) == 2) & (np.minimum(first, second) > 0)).any(1)
