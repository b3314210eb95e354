"""Meshes as signed distance grids: accuracy, sign, audit, cache, contacts and their gradients."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp

from collision_meshes import (
    bowl_profile,
    cube,
    inside_profile,
    mug_profile,
    profile_distance,
    revolved,
    torus,
    torus_distance,
)
from collision_support import ContactBench, directional_errors, random_poses, rotate, two_shape_scene
from warpsim.collision.geometry import build_geometry
from warpsim.collision.grid import GridData, grid_sdf
from warpsim.core.errors import SceneError
from warpsim.core.precision import real, vec3
from warpsim.geometry.mesh_audit import audit_mesh, weld
from warpsim.geometry.mesh_points import MAX_SURFACE_POINTS, surface_points
from warpsim.geometry.mesh_sdf import mesh_sdf
from warpsim.scene.description import Mesh, Scene, Shape

KINDS = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "cone", "box", "hull", "mesh")
FULL = pytest.param(4000, marks=pytest.mark.long)


pytestmark = pytest.mark.usefixtures("own_cache")


@wp.kernel
def _evaluate_kernel(
    grids: GridData,
    scale: wp.array(dtype=real),
    point: wp.array(dtype=vec3),
    distance: wp.array(dtype=real),
    gradient: wp.array(dtype=vec3),
):
    i = wp.tid()
    d, g = grid_sdf(grids, 0, scale[i], point[i])
    distance[i] = d
    gradient[i] = g


def mesh_scene(mesh: Mesh, resolution: int = 64) -> Scene:
    scene = Scene(meshes={mesh.name: mesh})
    scene.shapes.append(
        Shape(name="/World/Mesh", kind="mesh", mesh=mesh.name, size=np.ones(3), sdf_resolution=resolution)
    )
    return scene


class GridField:
    """A mesh's grid at many points, with adjoints."""

    def __init__(self, grids: GridData, points: np.ndarray, scale: np.ndarray):
        n = len(points)
        self.scale = wp.array(scale, dtype=real, device="cpu", requires_grad=True)
        self.point = wp.array(points, dtype=vec3, device="cpu", requires_grad=True)
        self.distance = wp.zeros(n, dtype=real, device="cpu", requires_grad=True)
        self.gradient = wp.zeros(n, dtype=vec3, device="cpu", requires_grad=True)
        self.tape = wp.Tape()
        with self.tape:
            inputs = [grids, self.scale, self.point]
            wp.launch(_evaluate_kernel, n, inputs=inputs, outputs=[self.distance, self.gradient], device="cpu")


def evaluate(mesh: Mesh, points: np.ndarray, resolution: int = 64) -> tuple[np.ndarray, float]:
    geometry = build_geometry(mesh_scene(mesh, resolution), "cpu")
    field = GridField(geometry.grids, points, np.ones(len(points)))
    return field.distance.numpy(), float(geometry.grids.spacing.numpy()[0])


def test_torus_is_within_half_a_cell_and_of_the_right_sign(rng):
    mesh = torus()
    points = rng.uniform(-1, 1, size=(4000, 3)) * [0.5, 0.5, 0.2]
    distance, spacing = evaluate(mesh, points)
    truth = torus_distance(points)
    assert np.abs(distance - truth).max() < 0.5 * spacing
    clear = np.abs(truth) > 6e-4  # the flat triangles cut this deep into the round surface
    assert ((distance > 0) == (truth > 0))[clear].all()


@pytest.mark.parametrize("profile", [bowl_profile, mug_profile])
def test_bowl_and_mug_are_hollow(profile, rng):
    outline = profile()
    mesh = revolved(outline, 128, profile.__name__)
    points = rng.uniform(-1, 1, size=(4000, 3)) * 0.35
    distance, spacing = evaluate(mesh, points, 40)
    truth = profile_distance(outline, points)
    near = truth < 8 * spacing  # the bowl's center, far from its surface, is a cusp of the distance
    assert np.abs(np.abs(distance) - truth)[near].max() < 0.5 * spacing
    clear = truth > 0.5 * spacing
    assert ((distance < 0) == inside_profile(outline, points))[clear].all()
    assert inside_profile(outline, points).any() and (~inside_profile(outline, points)).any()


@pytest.mark.parametrize("count", [500, FULL])
def test_grid_has_true_adjoints_in_place_and_scale(count, rng):
    grids = build_geometry(mesh_scene(torus()), "cpu").grids
    points, scale = rng.uniform(-1, 1, size=(count, 3)) * [0.4, 0.4, 0.12], rng.uniform(0.9, 1.1, size=count)
    weight, weights = rng.normal(size=count), rng.normal(size=(count, 3))
    field = GridField(grids, points, scale)
    field.distance.grad.assign(weight)
    field.gradient.grad.assign(weights)
    field.tape.backward()
    way, grow = rng.normal(size=(count, 3)), rng.normal(size=count)
    exact = (field.point.grad.numpy() * way).sum(1) + field.scale.grad.numpy() * grow

    def loss(step: float) -> np.ndarray:
        moved = GridField(grids, points + step * way, scale + step * grow)
        return moved.distance.numpy() * weight + (moved.gradient.numpy() * weights).sum(1)

    size = np.maximum(np.linalg.norm(field.point.grad.numpy(), axis=1), 1e-3)
    best = np.full(count, np.inf)
    for step in (1e-5, 1e-6, 1e-7):
        best = np.minimum(best, np.abs((loss(step) - loss(-step)) / (2 * step) - exact) / size)
    assert best.max() < 1e-6


def torus_scene(first: str) -> Scene:
    own = {"mesh": {"mesh": "torus"}, "hull": {"mesh": "cube"}}.get(first, {})
    scene = two_shape_scene(first, "mesh", a=own, b={"mesh": "torus"})
    scene.meshes["cube"] = cube()
    for shape in scene.shapes:
        if shape.mesh:
            shape.size = np.ones(3)
            shape.sdf_resolution = 48
    scene.meshes["torus"] = torus(around=64, across=32)
    return scene


@pytest.mark.parametrize("count", [60, FULL])
@pytest.mark.parametrize(
    "first", ["plane", "sphere", "capsule", "ellipsoid", "cylinder", "cone", "box", "hull", "mesh"]
)
def test_contacts_with_a_mesh_have_true_gradients(first, count, rng):
    scene = torus_scene(first)
    position, rotation = random_poses(first, rng, count, 0.5)
    error, touching = directional_errors(scene, position, rotation, rng)
    assert touching.sum() > count / 4
    assert len(error) > 0.98 * touching.sum()  # the rest straddle a change of a discrete choice
    assert error.max() < 1e-6


def test_sphere_touches_the_torus_where_it_should(rng):
    scene = torus_scene("sphere")
    scene.shapes[0].size = np.array([0.1, 0.0, 0.0])
    position, rotation = random_poses("sphere", rng, 300, 0.45)
    found = ContactBench(scene, position, rotation).run()
    local = rotate(rotation[:, 1] * [1, -1, -1, -1], position[:, 0] - position[:, 1])
    truth = torus_distance(local) - 0.1
    spacing = 0.84 / 48
    clear = np.abs(truth) > 0.5 * spacing
    np.testing.assert_array_equal(found.count[clear], (truth < 0)[clear])
    touching = found.count > 0
    assert touching.sum() > 50
    assert np.abs(found.distance[touching, 0] - truth[touching]).max() < 0.5 * spacing


def test_torus_rests_on_a_plane_with_contacts_all_round():
    scene = torus_scene("plane")
    position = np.zeros((1, 2, 3))
    position[0, 1, 2] = 0.115
    found = ContactBench(scene, position, np.tile([1.0, 0, 0, 0], (1, 2, 1))).run()
    assert found.count[0] == 4
    angle = np.sort(np.arctan2(found.point[0, :4, 1], found.point[0, :4, 0]))
    assert np.diff(np.append(angle, angle[0] + 2 * np.pi)).max() < np.pi  # the center is inside their polygon


def test_second_load_comes_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPSIM_CACHE", str(tmp_path))
    mesh = torus()
    first = mesh_sdf(mesh, 32)
    with monkeypatch.context() as patch:
        patch.setattr("warpsim.geometry.mesh_sdf._build", None)  # building again would fail
        second = mesh_sdf(mesh, 32)
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    assert first.memory == first.coefficients.size * 8
    (stored,) = tmp_path.rglob("*.npz")
    stored.write_bytes(b"not a grid")
    np.testing.assert_array_equal(mesh_sdf(mesh, 32).coefficients, first.coefficients)
    mesh.vertices = mesh.vertices * 1.001
    mesh_sdf(mesh, 32)
    assert len(list(tmp_path.rglob("*.npz"))) == 2


def broken(change) -> Mesh:
    mesh = cube()
    change(mesh)
    return mesh


BAD_MESHES = {
    "is open": lambda m: setattr(m, "faces", m.faces[1:]),
    "normals point inward": lambda m: setattr(m, "faces", m.faces[:, ::-1]),
    "opposite orientation": lambda m: m.faces.__setitem__(0, m.faces[0][::-1].copy()),
    "not finite": lambda m: m.vertices.__setitem__((0, 0), np.nan),
    "check the units": lambda m: setattr(m, "vertices", m.vertices * 1e7),
    "cannot bound a volume": lambda m: setattr(m, "faces", m.faces[:2]),
    "outside 0": lambda m: m.faces.__setitem__((0, 0), 99),
    "more than two faces": lambda m: setattr(m, "faces", np.concatenate([m.faces, m.faces[:1, ::-1], m.faces[:1]])),
}


@pytest.mark.parametrize("message", BAD_MESHES)
def test_bad_meshes_fail_with_their_name_and_the_fault(message):
    with pytest.raises(SceneError, match=message) as error:
        mesh_sdf(broken(BAD_MESHES[message]), 16)
    assert "'cube'" in str(error.value)


def test_resolution_and_names_are_checked():
    with pytest.raises(SceneError, match="use 4 or more"):
        mesh_sdf(cube(), 2)
    with pytest.raises(SceneError, match="lower it to"):
        mesh_sdf(cube(), 4000)
    scene = mesh_scene(cube())
    scene.shapes[0].mesh = "cub"
    with pytest.raises(SceneError, match="/World/Mesh.*no mesh 'cub'; meshes: cube"):
        build_geometry(scene, "cpu")


def test_repeated_vertices_are_welded():
    mesh = cube()
    loose = Mesh("loose", mesh.vertices[mesh.faces].reshape(-1, 3), np.arange(36).reshape(-1, 3))
    vertices, faces = audit_mesh(loose)
    assert len(vertices) == 8 and len(faces) == 12


def test_surface_points_keep_corners_and_spread():
    mesh = cube()
    points = surface_points(mesh.vertices, mesh.faces)
    assert len(points) == MAX_SURFACE_POINTS
    np.testing.assert_array_equal(points[:8], mesh.vertices)
    half = np.array([0.3, 0.4, 0.5])
    on_face = np.abs(np.abs(points) - half).min(axis=1)
    assert on_face.max() < 1e-12


def collision_meshes(assets_dir) -> dict[str, Mesh]:
    """Every closed collision mesh of the robots beside the project, in MuJoCo's reading."""
    out = {}
    for path in sorted(assets_dir.glob("*/mjcf/*.xml")):
        try:
            model = mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            continue
        for geom in range(model.ngeom):
            if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH and model.geom_contype[geom]:
                k = model.geom_dataid[geom]
                v, f = model.mesh_vertadr[k], model.mesh_faceadr[k]
                vertices = model.mesh_vert[v : v + model.mesh_vertnum[k]].astype(float)
                faces = model.mesh_face[f : f + model.mesh_facenum[k]]
                out[f"{path.parts[-3]}/{model.mesh(k).name}"] = Mesh(model.mesh(k).name, vertices, faces.copy())
    return out


@pytest.mark.long
def test_every_collision_mesh_of_the_robots_has_the_right_sign(assets_dir, rng):
    meshes = collision_meshes(assets_dir)
    assert len(meshes) > 10
    for name, mesh in meshes.items():
        vertices, faces = audit_mesh(mesh)
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        points = rng.uniform(low, high, size=(400, 3))
        distance, spacing = evaluate(mesh, points)
        corner = vertices[faces]
        winding = solid_angle(points, corner)
        clear = np.abs(distance) > 0.5 * spacing
        assert clear.mean() > 0.5
        assert ((distance < 0) == (winding > 0.5))[clear].all(), name


def solid_angle(points: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """Winding number by the solid angles of all triangles (van Oosterom and Strackee 1983)."""
    total = np.zeros(len(points))
    for start in range(0, len(corner), 256):
        a, b, c = (corner[None, start : start + 256, k] - points[:, None] for k in range(3))
        la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
        volume = (a * np.cross(b, c)).sum(2)
        scale = la * lb * lc + (a * b).sum(2) * lc + (b * c).sum(2) * la + (c * a).sum(2) * lb
        total += 2 * np.arctan2(volume, scale).sum(axis=1)
    return total / (4 * np.pi)


def test_weld_drops_needles():
    vertices = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 0, 1e-12)], float)
    welded, faces = weld(vertices, np.array([(0, 1, 2), (1, 2, 3)]))
    assert len(welded) == 3 and len(faces) == 1
