"""Convex pieces of concave meshes: how well their union fits, by closed forms and by another hull code (SciPy's)."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from scipy.spatial import ConvexHull

from collision_meshes import bowl_profile, cube, inside_profile, mug_profile, profile_distance, revolved, torus
from warpsim.collision.contacts import ShapePoses
from warpsim.collision.query import PointDistance
from warpsim.core.errors import SceneError, UnknownNameError
from warpsim.core.precision import quat, vec3
from warpsim.geometry.convex_cells import clip
from warpsim.geometry.decomposition import decompose, decompose_shape
from warpsim.geometry.mesh_audit import signed_volume, weld
from warpsim.geometry.quickhull import hull_triangles
from warpsim.scene import Decomposition, Mesh, Scene, Shape, validate

pytestmark = pytest.mark.usefixtures("own_cache")


def ell() -> Mesh:
    """An L of two blocks: 2×1×1 and on its left end 1×1×1; exactly two convex pieces."""
    outline = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], float)
    fan = np.array([(3, 4, 5), (3, 5, 0), (3, 0, 1), (3, 1, 2)])  # about the inner corner
    below, above = (np.column_stack([outline[:, 0], np.full(6, y), outline[:, 1]]) for y in (0.0, 1.0))
    sides = [t for i in range(6) for j in [(i + 1) % 6] for t in ((i, j, j + 6), (i, j + 6, i + 6))]
    faces = np.concatenate([fan, fan[:, ::-1] + 6, np.array(sides)[:, ::-1]])
    mesh = Mesh("ell", np.concatenate([below, above]), faces)
    return mesh if signed_volume(mesh.vertices, mesh.faces) > 0 else Mesh("ell", mesh.vertices, faces[:, ::-1])


def pieces(mesh: Mesh, **settings):
    return decompose(mesh.vertices, mesh.faces, Decomposition(**settings), name=mesh.name)


def equations(found) -> list[np.ndarray]:
    """Half spaces (n, 4) of every piece, by SciPy."""
    return [ConvexHull(vertices).equations for vertices in found.vertices]


def in_union(hulls: list[np.ndarray], points: np.ndarray, slack: float = 0.0) -> np.ndarray:
    inside = np.zeros(len(points), bool)
    for planes in hulls:
        inside |= (points @ planes[:, :3].T + planes[:, 3] <= slack).all(axis=1)
    return inside


def test_an_ell_is_two_blocks():
    found = pieces(ell())
    assert sorted(len(v) for v in found.vertices) == [8, 8]
    assert sorted(ConvexHull(v).volume for v in found.vertices) == pytest.approx([1.0, 2.0], abs=1e-7)
    assert found.depth == pytest.approx(0.0, abs=1e-6)
    assert found.excess == pytest.approx(0.0, abs=1e-6)


def test_what_is_convex_stays_in_one_piece():
    found = pieces(cube())
    np.testing.assert_allclose(np.sort(found.vertices[0], axis=0), np.sort(cube().vertices, axis=0), atol=1e-9)
    assert len(found.vertices) == 1


FITTED = {
    "mug": (mug_profile, 24, {}, 20),
    "coarse mug": (mug_profile, 16, {"tolerance": 0.05}, 12),
    "bowl": (bowl_profile, 32, {"max_pieces": 64}, 64),
}


@pytest.mark.parametrize(
    "name", ["coarse mug", pytest.param("mug", marks=pytest.mark.long), pytest.param("bowl", marks=pytest.mark.long)]
)
def test_solids_of_revolution(name, rng):
    """The union covers the solid, sticks out of it by less than the tolerance, and leaves the hollow open."""
    profile, around, settings, most = FITTED[name]
    mesh = revolved(profile(), around, name)
    tolerance = settings.get("tolerance", Decomposition().tolerance)
    found = pieces(mesh, **settings)
    extent = float(np.ptp(mesh.vertices, axis=0).max())
    assert len(found.vertices) <= most
    hulls = equations(found)
    assert in_union(hulls, mesh.vertices, 0.005 * extent).all()
    for vertices in found.vertices:  # points all over the pieces, by convex combination
        share = rng.dirichlet(np.full(4, 0.4), size=400)
        points = (share[:, :, None] * vertices[rng.integers(len(vertices), size=(400, 4))]).sum(axis=1)
        out = ~inside_profile(profile(), points)
        # The profile's round surface is up to one sagitta further out than that of its 24 flat sides.
        sagitta = 0.3 * (1 - np.cos(np.pi / around))
        assert (profile_distance(profile(), points)[out]).max(initial=0.0) <= tolerance * extent + sagitta
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    points = rng.uniform(low, high, size=(60_000, 3))
    union = in_union(hulls, points).mean() * np.prod(high - low)
    volume = signed_volume(*weld(mesh.vertices, mesh.faces))
    assert union / volume - 1.0 == pytest.approx(found.excess, abs=0.03)
    assert -0.01 < found.excess < (0.3 if tolerance > 0.03 else 0.15)
    assert found.depth <= tolerance


def test_torus_keeps_its_hole(rng):
    mesh = torus(around=24, across=12)
    found = pieces(mesh)
    hulls = equations(found)
    axis = np.column_stack([np.zeros((50, 2)), np.linspace(-0.2, 0.2, 50)])
    assert not in_union(hulls, axis).any()
    angle = rng.uniform(0, 2 * np.pi, 200)
    ring = 0.3 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    assert in_union(hulls, ring).all()
    assert -0.01 < found.excess < 0.04
    assert len(found.vertices) <= 16
    assert max(len(v) for v in found.vertices) <= 64


def test_limits_are_kept():
    mesh = torus(around=16, across=8)
    found = pieces(mesh, tolerance=0.1, max_pieces=3, max_vertices=12)
    assert len(found.vertices) <= 3
    assert max(len(v) for v in found.vertices) <= 12
    free = pieces(mesh)
    assert free.depth < found.depth


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_clipping_keeps_the_surface(axis, rng):
    """No area is lost or gained, and nothing is on the wrong side; corners in the plane and flat faces included."""
    triangles = rng.normal(size=(300, 3, 3))
    triangles[:60, 0, axis] = triangles[:40, 1, axis].mean()
    offset = float(triangles[0, 0, axis])
    triangles[20:30, :, axis] = offset

    def area(some: np.ndarray) -> float:
        return float(np.linalg.norm(np.cross(some[:, 1] - some[:, 0], some[:, 2] - some[:, 0]), axis=1).sum())

    below, above = clip(triangles, axis, offset)
    assert area(below) + area(above) == pytest.approx(area(triangles), rel=1e-12)
    assert below[:, :, axis].max() <= offset + 1e-12
    assert above[:, :, axis].min() >= offset - 1e-12
    up = np.cross(triangles[20:30, 1] - triangles[20:30, 0], triangles[20:30, 2] - triangles[20:30, 0])[:, axis] > 0
    assert ((below[:, :, axis] == offset).all(axis=1)).sum() == up.sum()


def test_a_hull_of_few_vertices_comes_close(rng):
    points = rng.normal(size=(500, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    full = ConvexHull(points)
    volumes = []
    for limit in (8, 16, 64):
        triangles = hull_triangles(points, limit)
        assert len(np.unique(triangles)) <= limit
        few = ConvexHull(points[np.unique(triangles)])
        assert signed_volume(points, triangles) == pytest.approx(few.volume, rel=1e-9)
        volumes.append(few.volume / full.volume)
    assert volumes == sorted(volumes)
    assert volumes[-1] > 0.85
    assert len(np.unique(hull_triangles(points, 1000))) == len(full.vertices)


def test_second_load_comes_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPSIM_CACHE", str(tmp_path))
    mesh = torus(around=16, across=8)
    first = pieces(mesh)
    (stored,) = tmp_path.rglob("*.npz")
    written = stored.stat().st_mtime_ns
    monkeypatch.setattr("warpsim.geometry.decomposition._search", None)  # a second search would fail
    second = pieces(mesh)
    assert stored.stat().st_mtime_ns == written
    for a, b in zip((*first.vertices, *first.faces), (*second.vertices, *second.faces), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (first.depth, first.excess) == (second.depth, second.excess)


def test_the_cache_knows_content_and_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPSIM_CACHE", str(tmp_path))
    first = pieces(ell())
    (stored,) = tmp_path.rglob("*.npz")
    stored.write_bytes(b"no pieces")
    np.testing.assert_array_equal(pieces(ell()).vertices[0], first.vertices[0])
    pieces(ell(), max_pieces=5)
    pieces(Mesh("ell", 1.001 * ell().vertices, ell().faces))
    assert len(list(tmp_path.rglob("*.npz"))) == 3


def test_a_shape_of_a_scene_is_taken_apart():
    """The ell at twice its size: pieces scale with their whole, and a point in the notch is outside."""
    scene = Scene(meshes={"ell": ell()})
    scene.shapes = [Shape("ell", "mesh", mesh="ell", size=np.full(3, 2.0)), Shape("ball", "sphere", size=np.ones(3))]
    decompose_shape(scene, "ell")
    assert [s.name for s in scene.shapes] == ["ell", "ell:piece0", "ell:piece1", "ball"]
    validate(scene)
    query = PointDistance(scene, ["ell", "ell"], device="cpu")
    points = wp.array(np.array([[(3.0, 1.0, 3.5), (1.0, 1.0, 3.5)]]), dtype=vec3, device="cpu")
    still = ShapePoses(
        wp.zeros((1, 4), dtype=vec3, device="cpu"),
        wp.array(np.tile([1.0, 0, 0, 0], (1, 4, 1)), dtype=quat, device="cpu"),
        wp.array([[s.size for s in scene.shapes]], dtype=vec3, device="cpu"),
    )
    np.testing.assert_allclose(query(points, still).distance.numpy(), [[1.0, -0.5]], atol=1e-6)
    with pytest.raises(UnknownNameError, match="el"):
        decompose_shape(scene, "el")
    for name in ("ball", "ell"):
        with pytest.raises(SceneError, match="only a mesh that collides"):
            decompose_shape(scene, name)


def _fingerprint(found) -> str:
    return hashlib.sha256(b"".join(a.tobytes() for a in (*found.vertices, *found.faces))).hexdigest()


@pytest.mark.long
def test_another_process_finds_the_same_pieces(tmp_path):
    mesh = torus(around=16, across=8)
    code = (
        "from test_decomposition import _fingerprint, pieces, torus\n"
        "print(_fingerprint(pieces(torus(around=16, across=8))))"
    )
    tests = Path(__file__).parents[1] / "support"
    environment = {
        **os.environ,
        "WARPSIM_CACHE": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(tests), str(tests.parents[1])]),
        "PYTHONHASHSEED": "7",
        "OMP_NUM_THREADS": "1",
    }
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split()[-1] == _fingerprint(pieces(mesh))
