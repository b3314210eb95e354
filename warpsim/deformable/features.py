"""What of a matter touches what: vertices, faces and edges of its surface, and which face answers for a shared edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsim.deformable.description import Curve, Matter, Sheet, vertices_of


@dataclass(frozen=True)
class Features:
    """Connectivity of self-contact.

    Attributes:
        vertex: (n,) vertices that touch faces.
        face: (m, 3); segments of curves are faces whose last two corners are one.
        owner: (m,) bits of what a face answers for: 1, 2, 4 its edges 01, 12, 20, and 8, 16, 32 its corners. What
            several faces share belongs to the first, so that a vertex above it touches once.
        edge: (k, 2), the smaller vertex first.
        star: Faces of all vertices, vertex after vertex.
        first: (vertices + 1,) where those of each begin.
    """

    vertex: np.ndarray
    face: np.ndarray
    owner: np.ndarray
    edge: np.ndarray
    star: np.ndarray
    first: np.ndarray


def features_of(matter: Matter) -> Features:
    """Of all parts: `Matter.faces`, or else the triangles of sheets; and the segments of curves."""
    faces = np.asarray(matter.faces, np.int64).reshape(-1, 3)
    if not len(faces):
        sheets = [vertices_of(part) for part in matter.parts if isinstance(part, Sheet)]
        faces = np.concatenate([np.zeros((0, 3), np.int64), *sheets])
    segments = [vertices_of(part)[:, [0, 1, 1]] for part in matter.parts if isinstance(part, Curve)]
    face = np.concatenate([faces, *segments]).astype(np.int64)
    owner, taken, edges = np.zeros(len(face), np.int64), set(), set()
    for f, corners in enumerate(face.tolist()):
        for k in range(3):
            pair = tuple(sorted((corners[k], corners[(k + 1) % 3])))
            if pair[0] != pair[1]:
                edges.add(pair)
            for bit, what in ((1 << k, pair), (8 << k, (corners[k],))):
                if what not in taken:
                    taken.add(what)
                    owner[f] |= bit
    edge = np.array(sorted(edges), np.int64).reshape(-1, 2)
    count = len(np.asarray(matter.points))
    around = np.unique(np.stack([face.ravel(), np.repeat(np.arange(len(face)), 3)], axis=1), axis=0)
    first = np.searchsorted(around[:, 0], np.arange(count + 1))
    return Features(np.unique(face), face, owner, edge, around[:, 1], first)
