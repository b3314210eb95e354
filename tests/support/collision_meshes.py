"""Closed meshes of our own, with known distances: torus, bowl, mug, and a plain cube."""

from __future__ import annotations

import numpy as np

from warpsim.scene.description import Mesh


def revolved(profile: np.ndarray, around: int, name: str) -> Mesh:
    """Turns a closed profile (n, 2) of (radius, z), counterclockwise, about the z axis; radii may be zero."""
    angle = 2 * np.pi * np.arange(around) / around
    ring = [np.stack([r * np.cos(angle), r * np.sin(angle), np.full(around, z)], axis=1) for r, z in profile]
    faces = []
    for i in range(len(profile)):
        j = (i + 1) % len(profile)
        for k in range(around):
            a, b = i * around + k, i * around + (k + 1) % around
            c, d = j * around + (k + 1) % around, j * around + k
            if profile[i, 0] > 0:
                faces.append((a, b, c))
            if profile[j, 0] > 0:
                faces.append((a, c, d))
    return Mesh(name, np.concatenate(ring), np.array(faces))


def torus(ring: float = 0.3, tube: float = 0.12, around: int = 96, across: int = 48) -> Mesh:
    """A torus about z; its vertices lie on the exact surface."""
    angle = 2 * np.pi * np.arange(across) / across
    profile = np.stack([ring + tube * np.cos(angle), tube * np.sin(angle)], axis=1)
    return revolved(profile, around, "torus")


def torus_distance(points: np.ndarray, ring: float = 0.3, tube: float = 0.12) -> np.ndarray:
    """Exact signed distance of points (n, 3)."""
    return np.hypot(np.hypot(points[:, 0], points[:, 1]) - ring, points[:, 2]) - tube


def bowl_profile() -> np.ndarray:
    """A half sphere's shell, open at the top."""
    angle = np.linspace(-np.pi / 2, 0.0, 24)
    outer = 0.3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inner = 0.25 * np.stack([np.cos(angle), np.sin(angle)], axis=1)[::-1]
    profile = np.concatenate([outer, inner])
    profile[np.abs(profile[:, 0]) < 1e-12, 0] = 0.0
    return profile


def mug_profile() -> np.ndarray:
    """A straight cup with a thick bottom."""
    return np.array([(0.0, -0.2), (0.2, -0.2), (0.2, 0.2), (0.17, 0.2), (0.17, -0.16), (0.0, -0.16)])


def inside_profile(profile: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Whether points (n, 3) lie inside the solid of revolution (even-odd rule in the half plane)."""
    r, z = np.hypot(points[:, 0], points[:, 1]), points[:, 2]
    inside = np.zeros(len(points), bool)
    for (r0, z0), (r1, z1) in zip(profile, np.roll(profile, -1, axis=0), strict=True):
        crosses = (z0 > z) != (z1 > z)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside ^= crosses & (r < r0 + (z - z0) * (r1 - r0) / (z1 - z0))
    return inside


def profile_distance(profile: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Unsigned distance of points (n, 3) to the surface of revolution."""
    p = np.stack([np.hypot(points[:, 0], points[:, 1]), points[:, 2]], axis=1)
    best = np.full(len(points), np.inf)
    for a, b in zip(profile, np.roll(profile, -1, axis=0), strict=True):
        if a[0] == 0.0 and b[0] == 0.0:
            continue
        t = np.clip(((p - a) @ (b - a)) / ((b - a) @ (b - a)), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(p - a - t[:, None] * (b - a), axis=1))
    return best


def cube(half: tuple[float, float, float] = (0.3, 0.4, 0.5)) -> Mesh:
    """A box of twelve triangles."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    return Mesh("cube", corners, np.array(faces))
