"""Height fields: the mesh made of them, contacts, rays, gradients, rest, and their way from MJCF and to USD."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp

from collision_meshes import cube
from collision_support import ContactBench, directional_errors, random_quats, rotate, two_shape_scene
from rest_support import end_of
from warpsim.collision.contacts import ShapePoses
from warpsim.collision.ray_cast import RayCast
from warpsim.core.errors import SceneError
from warpsim.core.precision import quat, vec3
from warpsim.geometry.mesh_audit import audit_mesh, signed_volume
from warpsim.geometry.mesh_points import raised_points
from warpsim.io.mjcf.reader import read_mjcf, scene_from_mjmodel
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.scene import Body, Joint, Scene, Shape, heightfield_mesh

HALF = (1.6, 1.2)
VOXEL = 3.2 / 64
SIZES = {
    "sphere": (0.15, 0, 0),
    "capsule": (0.1, 0.2, 0),
    "box": (0.12, 0.16, 0.1),
    "ellipsoid": (0.12, 0.16, 0.1),
    "cylinder": (0.1, 0.2, 0),
    "cone": (0.1, 0.2, 0),
    "hull": (0.3, 0.3, 0.3),
    "mesh": (0.3, 0.3, 0.3),
}
SLOPE = np.array([0.15, -0.1])
WAVE, STEEPNESS = 4.0, 0.2


pytestmark = pytest.mark.usefixtures("own_cache")


def samples(height, rows: int = 61, columns: int = 81) -> np.ndarray:
    """(rows, columns) of a function of x and y over the field."""
    return height(*np.meshgrid(np.linspace(-HALF[0], HALF[0], columns), np.linspace(-HALF[1], HALF[1], rows)))


def tilted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return SLOPE[0] * x + SLOPE[1] * y


def waves(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return STEEPNESS / WAVE * np.sin(WAVE * x) + 0.0 * y


def field_scene(second: str, height) -> Scene:
    """A height field and another shape, each on a free body."""
    scene = two_shape_scene("heightfield", second, ((1.0, 1.0, 1.0), SIZES[second]))
    scene.shapes[0].mesh = "hills"
    scene.meshes["hills"] = heightfield_mesh("hills", samples(height), HALF)
    if height is tilted:
        scene.shapes[0].sdf_resolution = 32  # a plane is the same on any grid, but for its rim
    if second in ("hull", "mesh"):
        scene.meshes["cube"], scene.shapes[1].mesh = cube(), "cube"
    return scene


def poses_upon(height, kind: str, rng: np.random.Generator, count: int, depth: tuple[float, float]):
    """The field at the origin, the other shape at a random place and turn, at a true distance between the two given.

    Returns:
        (count, 2, 3) positions, (count, 2, 4) rotations, (count,) distances.
    """
    place = rng.uniform(-0.7, 0.7, size=(count, 2)) * [1.2, 0.8]
    position, rotation = np.zeros((count, 2, 3)), np.tile([1.0, 0, 0, 0], (count, 2, 1))
    position[:, 1, :2], position[:, 1, 2] = place, 0.2
    rotation[:, 1] = random_quats(rng, count)
    points, radius = skin(kind)
    turned = np.stack([rotate(np.tile(r, (len(points), 1)), points) for r in rotation[:, 1]])

    def distance() -> np.ndarray:
        world = position[:, None, 1] + turned
        return true_distance(height, world.reshape(-1, 3)).reshape(count, -1).min(axis=1) - radius

    position[:, 1, 2] += rng.uniform(*depth, size=count) - distance()
    return position, rotation, distance()


def moved_together(position, rotation, rng):
    """The same pairs with both shapes carried to a random place and turn of the world."""
    turn, shift = random_quats(rng, len(position)), rng.normal(size=(len(position), 3))
    w, v = turn[:, :1], turn[:, 1:]
    out = np.empty_like(rotation)
    for i in range(2):
        a, b = rotation[:, i, :1], rotation[:, i, 1:]
        out[:, i] = np.concatenate([w * a - (v * b).sum(1, keepdims=True), w * b + a * v + np.cross(v, b)], axis=1)
    return np.stack([shift + rotate(turn, position[:, i]) for i in range(2)], axis=1), out, turn


def skin(kind: str, count: int = 15) -> tuple[np.ndarray, float]:
    """Points that stand for a shape, in its frame, and the radius about them."""
    size, line = np.array(SIZES[kind]), np.linspace(-1, 1, count)
    if kind == "sphere":
        return np.zeros((1, 3)), size[0]
    if kind == "capsule":
        return np.stack([0 * line, 0 * line, size[1] * line], axis=1), size[0]
    if kind in ("hull", "mesh"):
        size = size * cube().vertices.max(axis=0)
    elif kind in ("cylinder", "cone"):
        size = size[[0, 0, 1]]  # boxes about them: near enough to place them
    grid = np.stack(np.meshgrid(line, line, line), axis=-1).reshape(-1, 3)
    return grid[np.abs(grid).max(axis=1) == 1.0] * size, 0.0


def nearest_on_waves(points: np.ndarray) -> np.ndarray:
    """The x of the waves' points nearest to given ones (n, 3), by Newton's method."""
    x = points[:, 0].copy()
    for _ in range(12):  # the nearest point's normal leads to the given one
        rise, slope = waves(x, 0.0) - points[:, 2], STEEPNESS * np.cos(WAVE * x)
        bend = -STEEPNESS * WAVE * np.sin(WAVE * x)
        x -= (x - points[:, 0] + rise * slope) / (1 + slope**2 + rise * bend)
    assert np.abs(x - points[:, 0] + (waves(x, 0.0) - points[:, 2]) * STEEPNESS * np.cos(WAVE * x)).max() < 1e-9
    return x


def true_distance(height, points: np.ndarray) -> np.ndarray:
    """Signed distance of points (n, 3) to the smooth surface."""
    if height is tilted:
        return (points[:, 2] - tilted(points[:, 0], points[:, 1])) / np.sqrt(1 + SLOPE @ SLOPE)
    x = nearest_on_waves(points)
    off = np.hypot(x - points[:, 0], waves(x, 0.0) - points[:, 2])
    return np.where(points[:, 2] < waves(points[:, 0], points[:, 1]), -off, off)


def true_normal(height, points: np.ndarray) -> np.ndarray:
    """Unit normals (n, 3) of the smooth surface at its points nearest to given ones."""
    slope = np.zeros((len(points), 2)) + SLOPE
    if height is waves:
        slope = np.stack([STEEPNESS * np.cos(WAVE * nearest_on_waves(points)), np.zeros(len(points))], axis=1)
    normal = np.column_stack([-slope, np.ones(len(points))])
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("height", [tilted, waves])
@pytest.mark.parametrize("kind", ["sphere", "capsule", "box"])
def test_distance_and_normal_are_the_smooth_surfaces(kind, height, count, rng):
    position, rotation, truth = poses_upon(height, kind, rng, count, (-0.05, 0.08))
    scene = field_scene(kind, height)
    carried, turned, turn = moved_together(position, rotation, rng)
    found = ContactBench(scene, carried, turned, margin=0.05).run()
    clear = np.abs(truth - 0.05) > 0.5 * VOXEL
    np.testing.assert_array_equal((found.count > 0)[clear], (truth < 0.05)[clear])
    touching = found.count > 0
    assert touching.sum() > count / 4
    active = np.arange(found.distance.shape[1])[None] < found.count[:, None]
    distance = np.where(active, found.distance, np.inf)
    assert np.abs(distance.min(axis=1) - truth)[touching].max() < 0.5 * VOXEL
    of_the_shape = active & (found.feature % 2 == 1)  # the field's own points meet the shape's faces, and their normals
    world, place = np.nonzero(of_the_shape)
    assert len(world) > count / 4
    back = turn[world] * [1, -1, -1, -1]
    point = rotate(back, found.point[world, place] - carried[world, 0])
    normal = rotate(back, found.frame[world, place, 0])
    assert np.linalg.norm(normal - true_normal(height, point), axis=1).max() < 0.02


def mujoco_model(heights: np.ndarray, kind: str, base: float = 0.4) -> mujoco.MjModel:
    """A field of the given heights (lowest 0) on the world and a shape on a free body, in MuJoCo."""
    rows, columns = heights.shape
    top = float(heights.max())
    used = {"sphere": 1, "capsule": 2, "box": 3}[kind]
    size = " ".join(map(str, SIZES[kind][:used]))
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-10"/>
        <asset><hfield name="hills" nrow="{rows}" ncol="{columns}" size="{HALF[0]} {HALF[1]} {top} {base}"/></asset>
        <worldbody><geom name="ground" type="hfield" hfield="hills"/>
        <body name="b" pos="0 0 1"><freejoint/><geom name="g" type="{kind}" size="{size}"/></body>
        </worldbody></mujoco>"""
    )
    model.hfield_data[:] = (heights / top).reshape(-1)
    return model


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["sphere", "capsule", "box"])
def test_contacts_are_mujocos_at_shallow_poses(kind, count, rng):
    heights = samples(waves, 49, 65)
    lift = -heights.min()
    model = mujoco_model(heights + lift, kind)
    scene = scene_from_mjmodel(model)
    position, rotation, _truth = poses_upon(waves, kind, rng, count, (-0.03, 0.02))
    position[:, 1, 2] += lift
    found = ContactBench(scene, position, rotation).run()
    data, touching = mujoco.MjData(model), 0
    for i in range(count):
        data.qpos[:] = np.concatenate([position[i, 1], rotation[i, 1]])
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        deepest = data.contact.dist.min() if data.ncon else np.inf
        ours = found.distance[i, : found.count[i]].min() if found.count[i] else np.inf
        assert min(ours, 0.0) == pytest.approx(min(deepest, 0.0), abs=VOXEL)
        touching += deepest < 0
    assert touching > count / 3


@pytest.mark.parametrize("count", [60, pytest.param(4000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "ellipsoid", "cylinder", "cone", "hull", "mesh"])
def test_contacts_have_true_gradients(kind, count, rng):
    scene = field_scene(kind, waves)
    if kind in ("hull", "mesh"):
        scene.shapes[1].sdf_resolution = 32
    position, rotation, _truth = poses_upon(waves, kind, rng, count, (-0.05, 0.08))
    position, rotation, _turn = moved_together(position, rotation, rng)
    error, touching = directional_errors(scene, position, rotation, rng)
    assert touching.sum() > count / 4
    assert len(error) > 0.95 * touching.sum()  # the rest straddle a change of a discrete choice
    assert error.max() < 1e-4


@pytest.mark.parametrize("rays", [500, pytest.param(20000, marks=pytest.mark.long)])
def test_rays_are_mujocos_on_rough_ground(rays, rng):
    """Heights at random: a square cut along the other diagonal would be seen at once."""
    model = mujoco_model(rng.uniform(0, 0.3, size=(9, 13)), "sphere", base=0.5)
    scene = scene_from_mjmodel(model)
    origin = rng.normal(size=(rays, 3))  # outside the solid, in which MuJoCo's rays meet the base's lid
    origin *= 2.2 / np.linalg.norm(origin, axis=1, keepdims=True)
    aim = rng.uniform(-1, 1, size=(rays, 3)) * [1.6, 1.2, 0.3]
    position = np.array([[[0, 0, 0.0], [0, 0, 50.0]]])
    poses = ShapePoses(
        wp.array(position, dtype=vec3, device="cpu"),
        wp.array(np.tile([1.0, 0, 0, 0], (1, 2, 1)), dtype=quat, device="cpu"),
        wp.array([[s.size for s in scene.shapes]], dtype=vec3, device="cpu"),
    )
    hits = RayCast(scene, rays, 1, "cpu")(
        wp.array(origin[None], dtype=vec3, device="cpu"),
        wp.array((aim - origin)[None], dtype=vec3, device="cpu"),
        poses,
    )
    distance, normal = hits.distance.numpy()[0], hits.normal.numpy()[0]
    data, geom, met = mujoco.MjData(model), np.zeros(1, np.int32), 0
    data.qpos[2] = 50.0
    mujoco.mj_forward(model, data)
    for i in range(rays):
        way = (aim[i] - origin[i]) / np.linalg.norm(aim[i] - origin[i])
        truth = mujoco.mj_ray(model, data, origin[i], way, None, 1, -1, geom, None)
        if truth < 0 or distance[i] < 0:
            assert truth < 0 and distance[i] == -1.0
            continue
        met += 1
        assert distance[i] == pytest.approx(truth, abs=1e-8 / max(abs(normal[i] @ way), 1e-3))
    assert met > 0.6 * rays


def test_a_ball_comes_to_rest_in_the_hollow():
    """A bowl of curvature 1/m; its bottom is one corner of the grid, at (0, 0)."""
    bowl = samples(lambda x, y: 0.5 * (x * x + y * y))
    scene = Scene(meshes={"bowl": heightfield_mesh("bowl", bowl, HALF)})
    scene.shapes.append(
        Shape(name="ground", kind="heightfield", mesh="bowl", size=np.ones(3), sdf_resolution=32, condim=1)
    )
    scene.shapes[0].position = np.array([0.3, 0.2, -0.4])
    scene.bodies.append(Body(name="ball", position=np.array([0.6, 0.35, 0.0])))
    scene.joints.append(Joint(name="ball", kind="free", body="ball", damping=8.0))
    scene.shapes.append(
        Shape(name="ball", kind="sphere", body="ball", size=np.array([0.15, 0, 0]), condim=1, density=100.0)
    )
    scene.options.timestep = 0.01
    (position,), (velocity,) = end_of(scene, 4.0)
    assert np.abs(velocity).max() < 1e-3
    np.testing.assert_allclose(position[:2], [0.3, 0.2], atol=0.5 * VOXEL)
    assert position[2] == pytest.approx(-0.4 + 0.15, abs=2e-3)


def test_a_box_lies_flat_on_four_points(rng):
    scene = field_scene("box", tilted)
    scene.meshes["hills"], scene.shapes[0].sdf_resolution = heightfield_mesh("hills", np.zeros((5, 7)), HALF, 0.8), 32
    position, rotation = np.zeros((1, 2, 3)), np.tile([1.0, 0, 0, 0], (1, 2, 1))
    position[0, 1] = [0.11, -0.07, 0.0995]
    found = ContactBench(scene, position, rotation).run()
    assert found.count[0] >= 4
    offset = found.point[0, : found.count[0], :2] - position[0, 1, :2]
    assert len({tuple(np.sign(o)) for o in offset}) == 4
    np.testing.assert_allclose(found.distance[0, : found.count[0]], -0.0005, atol=1e-5)


def test_a_plate_is_held_by_the_peak_beneath_it():
    """None of the plate's own points is near the peak: the field's are what touches."""
    peak = samples(lambda x, y: 0.3 * np.exp(-20 * ((x - 0.2) ** 2 + (y - 0.1) ** 2)))
    scene = field_scene("box", tilted)
    scene.meshes["hills"], scene.shapes[1].size = heightfield_mesh("hills", peak, HALF), np.array([0.9, 0.9, 0.05])
    scene.shapes[0].sdf_resolution = 32
    position, rotation = np.zeros((1, 2, 3)), np.tile([1.0, 0, 0, 0], (1, 2, 1))
    position[0, 1] = [0.0, 0.0, 0.34]
    found = ContactBench(scene, position, rotation).run()
    assert found.count[0] >= 1
    assert found.distance[0, 0] == pytest.approx(-0.01, abs=0.5 * VOXEL)
    np.testing.assert_allclose(found.point[0, 0, :2], [0.2, 0.1], atol=VOXEL)


def test_the_mesh_is_a_closed_solid_of_the_right_volume(rng):
    heights = rng.uniform(0.1, 0.4, size=(6, 9))
    vertices, faces = audit_mesh(heightfield_mesh("hills", heights, HALF, 0.3))
    corners = [heights[:-1, :-1], heights[:-1, 1:], heights[1:, :-1], heights[1:, 1:]]
    weight = (2, 1, 1, 2)  # the cut diagonal's ends belong to both triangles
    mean = sum(w * c.mean() for w, c in zip(weight, corners, strict=True)) / 6
    assert signed_volume(vertices, faces) == pytest.approx(4 * HALF[0] * HALF[1] * (mean + 0.3), rel=1e-12)
    deep = heightfield_mesh("deep", heights - 1.0, HALF)
    assert deep.vertices[:, 2].min() == pytest.approx((heights - 1.0).min() - 3.2 / 8)


def test_points_of_the_field_are_never_in_a_hollow():
    mesh = heightfield_mesh("hills", samples(waves), HALF)
    points = raised_points(mesh.vertices, np.asarray(mesh.faces, np.int64))
    assert len(points) == 512
    np.testing.assert_allclose(points[:, 2], waves(points[:, 0], points[:, 1]), atol=1e-12)
    inner = (np.abs(points[:, :2]) < np.array(HALF) - 1e-9).all(axis=1)
    assert inner.sum() > 300 and (points[inner, 2] > -1e-12).all()


BAD = {
    "2 × 2 or more": {"heights": np.zeros((1, 5))},
    "row 2, column 1 is nan": {"heights": np.array([[0, 0], [0, 0], [0, np.nan]])},
    "half_size": {"half_size": (1.0, 0.0)},
    "depth above zero": {"base": 0.0},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_fields_are_refused_by_name(message):
    good = {"heights": np.zeros((3, 3)), "half_size": (1.0, 1.0), "base": 0.1}
    with pytest.raises(SceneError, match=message) as error:
        heightfield_mesh("/World/Hills", **(good | BAD[message]))
    assert "'/World/Hills'" in str(error.value)


def test_mjcf_field_shares_a_name_with_a_mesh_and_has_a_thin_base():
    scene = read_mjcf(
        """<mujoco><asset>
        <mesh name="hill" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
        <hfield name="hill" nrow="3" ncol="301" size="3 2 0.5 0.01" elevation="{}"/></asset>
        <worldbody><geom name="ground" type="hfield" hfield="hill" pos="0 0 1" euler="0 0 30"/>
        <geom name="shown" type="hfield" hfield="hill" contype="0" conaffinity="0"/>
        <body><freejoint/><geom type="mesh" mesh="hill"/></body></worldbody></mujoco>""".format(
            " ".join(map(str, np.linspace(5, 7, 903)))
        )
    )
    ground, shown, _body = scene.shapes
    assert ground.kind == shown.kind == "heightfield" and ground.mesh == "hill_heights" and ground.collides
    assert not shown.collides and ground.sdf_resolution == 128
    vertices = scene.meshes["hill_heights"].vertices
    np.testing.assert_allclose(vertices.min(axis=0), [-3, -2, -6 / 8])
    np.testing.assert_allclose(vertices.max(axis=0), [3, 2, 0.5])
    notes = [str(entry) for entry in scene.ledger]
    assert any("hfield 'hill': size used (the base is 0.75 m deep, not 0.01" in note for note in notes)
    assert any("hfield 'hill': elevation used (300 heights along an edge" in note for note in notes)


def test_nan_heights_of_a_model_are_refused():
    model = mujoco_model(samples(waves) + 0.1, "sphere")
    model.hfield_data[3] = np.nan
    with pytest.raises(SceneError, match="height field 'hills': 1 heights are not finite"):
        scene_from_mjmodel(model)


def test_usd_keeps_the_field_as_a_mesh_collider(tmp_path, rng):
    heights = samples(waves)
    scene = scene_from_mjmodel(mujoco_model(heights - heights.min(), "box", base=0.1))
    author.save(export_scene(scene)[0], tmp_path / "hills.usda")
    again = read_usd(tmp_path / "hills.usda")
    ground = next(shape for shape in again.shapes if shape.kind == "mesh")
    assert ground.sdf_resolution == scene.shapes[0].sdf_resolution == 80 and ground.collides
    twin, original = again.meshes[str(ground.mesh)], scene.meshes["hills"]
    np.testing.assert_allclose(twin.vertices, original.vertices, atol=1e-6)
    np.testing.assert_array_equal(twin.faces, original.faces)
