"""Pictures against closed forms: silhouettes, occlusion, color; units, visibility, animation, cameras."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade, Vt

from render_support import (
    BLACK,
    HEIGHT,
    SIZE,
    WIDTH,
    backdrop,
    coverage,
    new_stage,
    picture,
    silhouette,
    top_view,
)
from warpsim.core.errors import InputError, SceneError, UnknownNameError
from warpsim.io.usd import author
from warpsim.io.usd.motion import ContactFrame
from warpsim.io.usd.reader import read_usd
from warpsim.scene import Body, Mesh, Scene, Shape
from warpsim.sim.simulator import Simulator
from warpsim.view.items.focus import find_focus
from warpsim.view.items.forces import force_segments
from warpsim.view.items.item import BOX, SPHERE, Item
from warpsim.view.items.scene_items import SceneReader
from warpsim.view.items.stage_items import StageReader
from warpsim.view.items.triangles import make_triangles
from warpsim.view.raycast import Camera, fit_camera, look_at, render_rollout, render_stage
from warpsim.view.raycast.shading import (
    AMBIENT_DOWN,
    AMBIENT_UP,
    CHECK,
    GROUND,
    GROUND_SHARE,
    LINE,
    SUN_DIRECTION,
    SUN_STRENGTH,
)

RED, GREEN = (0.8, 0.05, 0.05), (0.05, 0.7, 0.05)


def centroid(mask: np.ndarray) -> np.ndarray:
    """(x, y) in pixels, from the picture's middle, y up."""
    rows, columns = np.indices(mask.shape)
    x, y = columns + 0.5 - mask.shape[1] / 2, mask.shape[0] / 2 - rows - 0.5
    return np.array([(mask * x).sum(), (mask * y).sum()]) / mask.sum()


def encoded(linear: np.ndarray) -> np.ndarray:
    low = 12.92 * linear
    return np.round(255 * np.where(linear <= 0.0031308, low, 1.055 * np.abs(linear) ** (1 / 2.4) - 0.055))


def lit(color, normal, sunlit: bool = True) -> np.ndarray:
    normal = np.asarray(normal, dtype=float)
    ambient = AMBIENT_DOWN + (AMBIENT_UP - AMBIENT_DOWN) * (0.5 + 0.5 * normal[2])
    return encoded(np.array(color) * (ambient + sunlit * SUN_STRENGTH * max(0.0, normal @ SUN_DIRECTION)))


def test_sphere_in_perspective():
    """A sphere of radius r at depth h on the axis shows a disk of radius r/√(h² − r²) at unit distance."""
    stage, world = new_stage()
    author.sphere(world, "Ball", 0.5, position=(0, 0, 1.0), color=RED, collides=False)
    camera = look_at(np.array([0.0, -4.0, 1.0]), np.array([0.0, 0.0, 1.0]), aspect=1.5, field_of_view=0.6)
    mask = silhouette(stage, camera, width=240, height=160)
    radius = 0.5 / np.sqrt(4.0**2 - 0.5**2) * 80 / np.tan(0.3)
    assert mask.sum() == pytest.approx(np.pi * radius**2, rel=0.005)
    np.testing.assert_allclose(centroid(mask), 0.0, atol=0.05)


@pytest.mark.parametrize(
    ("add", "area"),
    [
        (lambda w: author.sphere(w, "S", 0.8, position=(0.4, -0.3, 0), collides=False), np.pi * 0.8**2),
        (lambda w: author.box(w, "S", (0.8, 0.5, 0.3), position=(0.4, -0.3, 0), collides=False), 4 * 0.8 * 0.5),
        (
            lambda w: author.capsule(w, "S", 0.3, 1.2, axis="X", position=(0.4, -0.3, 0), collides=False),
            np.pi * 0.3**2 + 1.2 * 0.6,
        ),
        (lambda w: author.cylinder(w, "S", 0.5, 1.4, axis="Y", position=(0.4, -0.3, 0), collides=False), 1.0 * 1.4),
        (lambda w: author.cylinder(w, "S", 0.8, 1.4, position=(0.4, -0.3, 0), collides=False), np.pi * 0.8**2),
        (lambda w: author.cone(w, "S", 0.8, 1.0, position=(0.4, -0.3, 0), collides=False), np.pi * 0.8**2),
    ],
    ids=["sphere", "box", "capsule", "cylinder side", "cylinder end", "cone end"],
)
def test_silhouettes_from_above(add, area):
    stage, world = new_stage()
    add(world)
    mask = silhouette(stage, top_view(), width=240, height=160)
    pixel = 4.0 / 160
    assert mask.sum() * pixel**2 == pytest.approx(area, rel=0.01)
    np.testing.assert_allclose(centroid(mask) * pixel, (0.4, -0.3), atol=0.1 * pixel)


def test_points_are_balls_of_their_widths():
    """Balls are drawn as icosahedra; seen along an axis through the middles of edges, one is a hexagon."""
    stage, world = new_stage()
    cloud = UsdGeom.Points.Define(stage, world.GetPath().AppendChild("Cloud"))
    cloud.CreatePointsAttr([(-1.0, 0.0, 0.0), (1.0, 0.5, 0.0)])
    cloud.CreateWidthsAttr([1.6, 1.8])
    mask = silhouette(stage, top_view())
    pixel, golden = 4.0 / HEIGHT, 0.5 * (1.0 + 5.0**0.5)
    hexagon = (4.0 * golden + 2.0 * golden * (golden - 1.0)) / (1.0 + golden**2)
    left, right = mask[:, : WIDTH // 2], mask[:, WIDTH // 2 :]
    for side, width in ((left, 1.6), (right, 1.8)):
        assert side.sum() * pixel**2 == pytest.approx(hexagon * (0.5 * width) ** 2, rel=0.02)
    whole = np.zeros_like(mask)
    whole[:, WIDTH // 2 :] = right
    np.testing.assert_allclose(centroid(whole) * pixel, (1.0, 0.5), atol=0.5 * pixel)
    shown = StageReader(stage).items(Usd.TimeCode(0.0))[0].mesh
    outward = np.einsum("ij,ij->i", np.cross(*(np.diff(shown.corners, axis=1).swapaxes(0, 1))), shown.normals[:, 0])
    assert len(shown.corners) == 40 and (outward > 0.0).all()


def test_cone_side_and_apex():
    """Seen from −y: a triangle with its apex at +z."""
    stage, world = new_stage()
    author.cone(world, "Cone", 0.5, 1.0, collides=False)
    camera = Camera(np.array([0.0, -5.0, 0.0]), np.eye(3)[0], np.eye(3)[2], 1.5, 1.0, orthographic=True)
    mask = silhouette(stage, camera, width=240, height=160)
    assert mask.sum() / 80.0**2 == pytest.approx(0.5, rel=0.01)
    assert centroid(mask)[1] / 80.0 == pytest.approx(-1.0 / 6.0, abs=0.002)


def test_box_rotated_scaled_and_sheared_to_a_parallelogram():
    stage, world = new_stage()
    prim = author.box(world, "Box", (1, 1, 1), collides=False)
    UsdGeom.Xformable(prim).ClearXformOpOrder()
    matrix = Gf.Matrix4d(0.8, 0.2, 0, 0, 0.5, 0.6, 0, 0, 0, 0, 0.1, 0, 0.1, 0.2, 0, 1)
    UsdGeom.Xformable(prim).AddTransformOp().Set(matrix)
    mask = silhouette(stage, top_view(), width=240, height=160)
    pixel = 4.0 / 160
    assert mask.sum() * pixel**2 == pytest.approx(4 * (0.8 * 0.6 - 0.2 * 0.5), rel=0.01)
    np.testing.assert_allclose(centroid(mask) * pixel, (0.1, 0.2), atol=0.1 * pixel)


def test_bounded_plane_has_width_along_x_and_length_along_y():
    stage, world = new_stage()
    plane = UsdGeom.Plane.Define(stage, world.GetPath().AppendChild("Sheet"))
    plane.CreateWidthAttr(3.0)
    plane.CreateLengthAttr(1.0)
    rows, columns = np.nonzero(silhouette(stage, top_view()) > 0.4)
    pixel = 4.0 / HEIGHT
    assert np.ptp(columns) + 1 == pytest.approx(3.0 / pixel, abs=1)
    assert np.ptp(rows) + 1 == pytest.approx(1.0 / pixel, abs=1)


@pytest.mark.parametrize(("axis", "right", "up"), [("X", 1, 2), ("Y", 0, 2), ("Z", 0, 1)])
def test_planes_along_each_axis_fill_their_extent(axis, right, up):
    """The extent that USD itself computes for the plane is the oracle."""
    stage, world = new_stage()
    plane = UsdGeom.Plane.Define(stage, world.GetPath().AppendChild("Sheet"))
    plane.CreateWidthAttr(2.4)
    plane.CreateLengthAttr(1.2)
    plane.CreateAxisAttr(axis)
    extent = UsdGeom.Boundable.ComputeExtentFromPlugins(plane, Usd.TimeCode.Default())
    low, high = (np.array(corner) for corner in extent)
    axes = np.eye(3)
    forward = np.cross(axes[up], axes[right])
    camera = Camera(-5.0 * forward, axes[right], axes[up], 3.0, 2.0, orthographic=True)
    rows, columns = np.nonzero(silhouette(stage, camera) > 0.4)
    pixel = 4.0 / HEIGHT
    assert (np.ptp(columns) + 1) * pixel == pytest.approx((high - low)[right], abs=2 * pixel)
    assert (np.ptp(rows) + 1) * pixel == pytest.approx((high - low)[up], abs=2 * pixel)


def test_nearer_things_hide_farther_ones():
    camera = top_view()
    for first, second in (((0, 0, 0), (0, 0, 2)), ((0, 0, 2), (0, 0, 0))):
        stage, world = new_stage()
        author.box(world, "A", (0.5, 0.5, 0.1), position=first, color=RED, collides=False)
        author.box(world, "B", (0.5, 0.5, 0.1), position=second, color=GREEN, collides=False)
        nearer = RED if first[2] > second[2] else GREEN
        image = picture(stage, camera)
        np.testing.assert_allclose(image[HEIGHT // 2, WIDTH // 2], lit(nearer, (0, 0, 1)), atol=1)


def test_color_of_a_lit_face_and_of_its_shadow():
    stage, world = new_stage()
    author.box(world, "Floor", (1.5, 1.5, 0.1), color=GREEN, collides=False)
    author.box(world, "Roof", (0.2, 0.2, 0.01), position=tuple(1.0 * SUN_DIRECTION), color=RED, collides=False)
    camera = top_view()
    image = picture(stage, camera)
    # The roof's shadow center on the floor's top, z = 0.1, is along the sun's direction from it.
    shadow = SUN_DIRECTION[:2] * (0.1 / SUN_DIRECTION[2])
    row, column = int(HEIGHT / 2 - shadow[1] * HEIGHT / 4), int(WIDTH / 2 + shadow[0] * HEIGHT / 4)
    np.testing.assert_allclose(image[row, column], lit(GREEN, (0, 0, 1), sunlit=False), atol=1)
    np.testing.assert_allclose(image[HEIGHT // 4, WIDTH // 4 + 5], lit(GREEN, (0, 0, 1)), atol=1)


def scene_in(meters_per_unit: float, up_axis: str) -> Usd.Stage:
    """Ground, box and ball in other units and axes; the same in meters."""
    stage = author.new_stage(meters_per_unit=meters_per_unit, up_axis=up_axis)
    world = author.world(stage)
    unit = 1.0 / meters_per_unit

    def place(x, y, z):
        return (unit * x, unit * y, unit * z) if up_axis == "Z" else (unit * x, unit * z, unit * -y)

    def extents(x, y, z):
        return (unit * x, unit * y, unit * z) if up_axis == "Z" else (unit * x, unit * z, unit * y)

    author.ground(world, color=(0.8, 0.8, 0.8))
    body = author.body(world, "Body", position=place(0.2, 0.1, 0.5))
    author.box(body, "Box", extents(0.3, 0.2, 0.1), color=RED)
    author.capsule(body, "Rod", 0.05 * unit, 0.6 * unit, axis=up_axis, position=place(0.3, 0, 0.2), color=GREEN)
    return stage


@pytest.mark.parametrize(("unit", "up_axis"), [(0.01, "Y"), (0.01, "Z"), (1.0, "Y"), (0.001, "Y")])
def test_units_and_up_axis_do_not_change_the_picture(unit, up_axis):
    reference = picture(scene_in(1.0, "Z"), None)
    other = picture(scene_in(unit, up_axis), None)
    difference = np.abs(reference.astype(int) - other)
    assert difference.mean() < 0.05  # a sample on an edge may round to the other side
    assert np.ptp(reference.astype(int)) > 100


def test_invisible_guide_and_proxy_are_not_drawn():
    stage, world = new_stage()
    shown = author.sphere(world, "Shown", 0.3, position=(1, 0, 0), collides=False)
    hidden = author.frame(world, "Hidden")
    author.sphere(hidden, "Inner", 0.3, position=(-1, 0, 0), collides=False)
    UsdGeom.Imageable(hidden).MakeInvisible()
    for name, purpose in (("G", "guide"), ("P", "proxy")):
        UsdGeom.Imageable(author.sphere(world, name, 0.3, position=(-1, 0, 0), collides=False)).CreatePurposeAttr(
            purpose
        )
    UsdGeom.Imageable(shown).CreatePurposeAttr("render")
    mask = silhouette(stage, top_view())
    assert mask[:, : WIDTH // 2].sum() == pytest.approx(0.0, abs=1e-9)
    assert mask[:, WIDTH // 2 :].sum() > 50


def test_animated_sample_equals_the_static_scene_in_that_pose():
    moving, world = new_stage()
    ball = author.box(world, "Box", (0.4, 0.2, 0.2), color=RED, collides=False)
    translate = ball.GetAttribute("xformOp:translate")
    orient = ball.GetAttribute("xformOp:orient")
    translate.Set(Gf.Vec3d(-1, 0, 0), 0.0)
    translate.Set(Gf.Vec3d(1, 0.5, 0), 10.0)
    orient.Set(Gf.Quatd(1, 0, 0, 0), 0.0)
    orient.Set(Gf.Quatd(np.cos(0.5), 0, 0, np.sin(0.5)), 10.0)
    still, world = new_stage()
    author.box(
        world,
        "Box",
        (0.4, 0.2, 0.2),
        position=(0, 0.25, 0),
        rotation=(np.cos(0.25), 0, 0, np.sin(0.25)),
        color=RED,
        collides=False,
    )
    camera = top_view()
    halfway = render_stage(moving, times=[0.0, 5.0], camera=camera, **SIZE)
    np.testing.assert_array_equal(halfway[1], picture(still, camera))
    assert (halfway[0] != halfway[1]).any()


def test_deforming_mesh_and_animated_visibility():
    stage, world = new_stage()
    mesh = UsdGeom.Mesh.Define(stage, world.GetPath().AppendChild("Sheet"))
    mesh.CreateDisplayColorAttr([Gf.Vec3f(*BLACK)])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    square = np.array([[-0.5, -0.5, 0], [0.5, -0.5, 0], [0.5, 0.5, 0], [-0.5, 0.5, 0]])
    for time, scale in ((0.0, 1.0), (1.0, 2.0)):
        mesh.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy((scale * square).astype(np.float32)), time)
    mesh.CreateVisibilityAttr().Set("inherited", 0.0)
    mesh.GetVisibilityAttr().Set("invisible", 2.0)
    camera = top_view()
    pictures = render_stage(stage, times=[0.0, 1.0, 2.0], camera=camera, **SIZE)
    areas = [coverage(p, backdrop(camera)).sum() * (4.0 / HEIGHT) ** 2 for p in pictures]
    np.testing.assert_allclose(areas, [1.0, 4.0, 0.0], atol=0.05)


def test_instances_are_drawn(tmp_path):
    asset, world = new_stage()
    author.sphere(world, "Ball", 0.3, color=BLACK, collides=False)
    author.save(asset, tmp_path / "ball.usda")
    stage, world = new_stage()
    for name, x in (("A", -1.0), ("B", 1.0)):
        author.reference(world, name, tmp_path / "ball.usda", position=(x, 0, 0), instanceable=True)
    assert stage.GetPrimAtPath("/World/A").IsInstance()
    mask = silhouette(stage, top_view())
    areas = [half.sum() * (4.0 / HEIGHT) ** 2 for half in np.hsplit(mask, 2)]
    np.testing.assert_allclose(areas, np.pi * 0.3**2, rtol=0.03)


def test_material_color_and_inherited_display_color():
    stage, world = new_stage()
    group = author.frame(world, "Group")
    UsdGeom.PrimvarsAPI(group).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray).Set([Gf.Vec3f(*GREEN)])
    author.box(group, "Left", (0.4, 0.4, 0.1), position=(-1, 0, 0), collides=False)
    right = author.box(group, "Right", (0.4, 0.4, 0.1), position=(1, 0, 0), collides=False)
    material = UsdShade.Material.Define(stage, "/World/Paint")
    shader = UsdShade.Shader.Define(stage, "/World/Paint/Surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(*RED))
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(right).Bind(material)
    image = picture(stage, top_view())
    np.testing.assert_allclose(image[HEIGHT // 2, WIDTH // 2 - 20], lit(GREEN, (0, 0, 1)), atol=1)
    np.testing.assert_allclose(image[HEIGHT // 2, WIDTH // 2 + 20], lit(RED, (0, 0, 1)), atol=1)


def test_mesh_cube_looks_like_the_cube():
    """Twelve triangles with sharp edges against the box in closed form, from an oblique camera."""
    plain, world = new_stage()
    author.box(world, "Box", (0.5, 0.5, 0.5), color=RED, collides=False)
    meshed, world = new_stage()
    mesh = UsdGeom.Mesh.Define(meshed, world.GetPath().AppendChild("Box"))
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)], dtype=np.float32)
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(corners))
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    mesh.CreateFaceVertexIndicesAttr(sum(faces, []))
    mesh.CreateDisplayColorAttr([Gf.Vec3f(*RED)])
    camera = look_at(np.array([2.0, -3.0, 2.0]), np.zeros(3), aspect=1.5)
    difference = np.abs(picture(plain, camera).astype(int) - picture(meshed, camera))
    assert (difference.max(axis=2) > 1).mean() < 0.002


def test_normals_are_smooth_on_a_sphere():
    turns = np.linspace(0, 2 * np.pi, 25)[:-1]
    heights = np.linspace(0, np.pi, 13)
    grid = np.stack(np.meshgrid(turns, heights), axis=-1).reshape(-1, 2)
    points = np.stack(
        [np.sin(grid[:, 1]) * np.cos(grid[:, 0]), np.sin(grid[:, 1]) * np.sin(grid[:, 0]), np.cos(grid[:, 1])], axis=1
    )
    points[np.isclose(np.abs(points[:, 2]), 1.0), :2] = 0.0
    rows, columns = np.arange(12)[:, None], np.arange(24)[None, :]
    a, b = rows * 24 + columns, rows * 24 + (columns + 1) % 24
    quads = np.stack([a, a + 24, b + 24, b], axis=-1).reshape(-1, 4)
    sphere = make_triangles(points, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]))
    assert np.einsum("mij,mij->mi", sphere.normals, sphere.corners).min() > 0.98


def test_endless_ground_reaches_the_horizon_and_has_no_acne():
    stage, world = new_stage()
    author.ground(world, color=(0.8, 0.8, 0.8))
    camera = look_at(np.array([0.0, -5.0, 2.0]), np.array([0.0, 0.0, 1.5]), aspect=1.5)
    image = picture(stage, camera).astype(int)
    lower = image[HEIGHT // 2 :]
    own = (1.0 - CHECK) * (GROUND + GROUND_SHARE * (0.8 - GROUND))
    darkest = lit(0.6 * own + 0.4 * LINE, (0, 0, 1))
    assert (lower >= darkest - 1).all()  # a sunlit grid, nowhere in its own shadow
    assert (darkest > lit(GROUND, (0, 0, 1), sunlit=False)).all()
    sky = backdrop(camera).astype(int)
    assert np.abs(image[: HEIGHT // 3] - sky[: HEIGHT // 3]).max() <= 2


def test_far_from_the_origin_nothing_changes():
    """The camera's place leaves the numbers before float32 sees them."""
    pictures = []
    for x in (0.0, 1.0e5):
        stage, world = new_stage()
        author.ground(world, color=(0.8, 0.8, 0.8))
        author.sphere(author.body(world, "Ball", position=(x, 0, 0.5)), "Shape", 0.5, color=RED)
        pictures.append(picture(stage, None).astype(int))
    assert np.abs(pictures[0] - pictures[1]).mean() < 1.0  # squares of the ground are known to about 1 cm there


def test_automatic_camera_shows_all_points_and_touches_its_margin(rng):
    points = rng.normal(size=(40, 3)) * (1.0, 0.3, 2.0) + (5.0, -3.0, 1.0)
    camera = fit_camera(points, aspect=1.5)
    local = points - camera.position
    depth = local @ camera.forward
    assert (depth > 0).all()
    across = np.abs(local @ camera.right / depth) / camera.half_width
    along = np.abs(local @ camera.up / depth) / camera.half_height
    assert max(across.max(), along.max()) == pytest.approx(1 / 1.2, abs=1e-9)


@pytest.mark.parametrize("aspect", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_a_window_of_another_shape_shows_all_of_the_old_one(aspect):
    """It grows in one direction only, and a picture of it is in proportion."""
    camera = Camera(np.array([1.0, -4.0, 2.0]), np.eye(3)[0], np.eye(3)[2], 1.5, 1.0, (0.1, -0.2), orthographic=True)
    wide = camera.widened(aspect)
    assert wide.half_width / wide.half_height == pytest.approx(aspect, rel=1e-12)
    assert wide.half_width >= 1.5 and wide.half_height >= 1.0
    assert wide.half_width == 1.5 or wide.half_height == 1.0
    assert (wide.center, wide.orthographic) == ((0.1, -0.2), True)
    assert all(np.array_equal(getattr(wide, name), getattr(camera, name)) for name in ("position", "right", "up"))


def test_a_wider_picture_keeps_circles_round():
    stage, world = new_stage()
    author.sphere(world, "Ball", 0.5, position=(0, 0, 1.0), color=RED, collides=False)
    camera = Camera(np.array([0.0, -4.0, 1.0]), np.eye(3)[0], np.eye(3)[2], 1.0, 1.0, orthographic=True)
    for width, height in ((120, 60), (60, 120)):
        mask = silhouette(stage, camera, width=width, height=height)
        extents = [np.ptp(np.flatnonzero(mask.any(axis))) + 1 for axis in (0, 1)]
        assert extents == pytest.approx([30, 30], abs=1)  # half of the smaller side


def test_usd_camera_perspective_and_orthographic():
    stage, world = new_stage(meters_per_unit=0.01, up_axis="Y")
    author.sphere(world, "Ball", 50.0, color=BLACK, collides=False)
    camera = UsdGeom.Camera.Define(stage, "/World/Eye")
    camera.AddTranslateOp().Set(Gf.Vec3d(0, 0, 400))  # looks along its −z, at the ball
    camera.CreateFocalLengthAttr(40.0)
    camera.CreateHorizontalApertureAttr(30.0)
    camera.CreateVerticalApertureAttr(20.0)
    empty, other = new_stage(meters_per_unit=0.01, up_axis="Y")
    author.sphere(other, "Ball", 50.0, position=(0, 0, 900), collides=False)
    empty.GetRootLayer().subLayerPaths.append(stage.GetRootLayer().identifier)
    image = picture(stage, "/World/Eye", width=240, height=160)
    background = picture(empty, "/World/Eye", width=240, height=160)
    radius = 0.5 / np.sqrt(4.0**2 - 0.5**2) * 80 / (10.0 / 40.0)
    assert coverage(image, background).sum() == pytest.approx(np.pi * radius**2, rel=0.01)
    camera.CreateProjectionAttr("orthographic")
    camera.CreateHorizontalApertureAttr(3000.0)  # tenths of a stage unit
    camera.CreateVerticalApertureAttr(2000.0)
    image = picture(stage, "/World/Eye", width=240, height=160)
    background = picture(empty, "/World/Eye", width=240, height=160)
    assert coverage(image, background).sum() == pytest.approx(np.pi * 0.5**2 * 80**2, rel=0.01)


class Poses:
    """A rollout of one row and world, as `render_rollout` reads it."""

    def __init__(self, scene):
        self.times = np.zeros(1)
        self._bodies = {body.name: body for body in scene.bodies}

    def body_position(self, name):
        return torch.from_numpy(self._bodies[name].position[None, None])

    def body_rotation(self, name):
        return torch.from_numpy(self._bodies[name].rotation[None, None])


def test_scene_and_poses_look_like_the_stage_they_came_from():
    stage = scene_in(0.01, "Y")
    scene = read_usd(stage)
    (image,) = render_rollout(scene, Poses(scene), **SIZE)
    difference = np.abs(image.astype(int) - picture(stage, None))
    assert difference.mean() < 0.05


@pytest.mark.parametrize(
    ("kind", "size", "area"),
    [
        ("sphere", (0.5, 0, 0), np.pi * 0.25),
        ("ellipsoid", (0.9, 0.4, 0.3), np.pi * 0.36),
        ("box", (0.5, 0.4, 0.3), 0.8),
        ("capsule", (0.5, 0.3, 0), np.pi * 0.25),
        ("cylinder", (0.5, 0.3, 0), np.pi * 0.25),
        ("cone", (0.5, 0.3, 0), np.pi * 0.25),
        ("mesh", (2.0, 1.0, 1.0), 1.0),
    ],
)
def test_shapes_of_a_scene(kind, size, area):
    """Seen from above; the mesh is a triangle with legs of 1 m, stretched along x."""
    mesh = Mesh("Flat", np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))
    shape = Shape("S", kind, body="B", size=np.array(size), mesh="Flat" if kind == "mesh" else None, color=BLACK)
    scene = Scene(bodies=[Body("B", position=np.array([0.3, -0.2, 0.1]))], shapes=[shape], meshes={"Flat": mesh})
    camera = top_view()
    (image,) = render_rollout(scene, Poses(scene), camera=camera, width=240, height=160)
    mask = coverage(image, backdrop(camera, width=240, height=160))
    assert mask.sum() * (4.0 / 160) ** 2 == pytest.approx(area, rel=0.01)
    center = (0.3 + 2 / 3, -0.2 + 1 / 3) if kind == "mesh" else (0.3, -0.2)
    np.testing.assert_allclose(centroid(mask) * (4.0 / 160), center, atol=0.1 * 4.0 / 160)


def test_the_automatic_view_keeps_what_stands_near_and_looks_into_a_bowl():
    ball = Item("Ball", SPHERE, np.array([0.1, 0, 0]), np.eye(4), np.ones(3), "/Ball")

    def still(half: float, x: float) -> Item:
        place = np.eye(4)
        place[0, 3] = x
        return Item("Still", BOX, np.full(3, half), place, np.ones(3), None)

    alone = find_focus([[ball]])
    beside, around, far = (find_focus([[ball, still(*at)]]) for at in ((0.05, 0.2), (0.4, 0.0), (0.1, 3.0)))
    assert (alone.size, alone.enclosed) == (pytest.approx(0.2), False)
    assert (beside.size, beside.enclosed) == (pytest.approx(0.35), False)
    assert (around.size, around.enclosed) == (pytest.approx(0.8), True)
    assert (far.size, far.enclosed) == (pytest.approx(0.2), False)


def test_same_bytes_every_time():
    stage = scene_in(1.0, "Z")
    np.testing.assert_array_equal(picture(stage, None), picture(stage, None))


def test_errors_name_the_fix(tmp_path):
    stage, world = new_stage()
    with pytest.raises(SceneError, match="nothing to draw"):
        picture(stage, None)
    author.sphere(world, "Ball", 1.0, collides=False)
    UsdGeom.Camera.Define(stage, "/World/Camera")
    with pytest.raises(UnknownNameError, match="did you mean '/World/Camera'"):
        picture(stage, "/World/Camra")
    with pytest.raises(UnknownNameError, match="/World/Camera"):
        picture(stage, "/World/Ball")
    with pytest.raises(InputError, match="width=0"):
        picture(stage, None, width=0)
    with pytest.raises(InputError, match="not both"):
        render_stage(stage, times=[0.0], frames=2)
    with pytest.raises(SceneError, match="cannot open"):
        render_stage(tmp_path / "missing.usda")


def test_contact_forces_are_arrows_from_where_they_act():
    stage, world = new_stage()
    body = author.body(world, "Body")
    author.box(body, "Box", (0.2, 0.2, 0.2), color=(0.05, 0.05, 0.05))
    scene = read_usd(stage)
    frame = ContactFrame(np.array([[0.0, 0.1, 0.0]]), np.array([[5.0, 0.0, 0.0]]))  # inside of the box, and yet seen
    camera = top_view(0.12, (0.1, 0.1, 10.0))
    plain, drawn = (
        render_rollout(scene, Poses(scene), camera=camera, contacts=contacts, **SIZE)[0].astype(int)
        for contacts in (None, [frame])
    )
    rows, columns = np.nonzero(np.abs(drawn - plain).max(axis=2) > 40)
    x = 0.1 + ((columns + 0.5) / HEIGHT * 2.0 - WIDTH / HEIGHT) * 0.12
    size = find_focus([SceneReader(scene).items({"/World/Body": np.eye(4)})]).size
    # The usual force is drawn 0.4 of the scene's size long, and a head of 0.04 follows.
    assert x.min() == pytest.approx(-0.008 * size, abs=0.005) and x.max() == pytest.approx(0.44 * size, abs=0.005)
    assert ((rows + 0.5) / HEIGHT).mean() == pytest.approx(0.5, abs=0.02)
    starts, ends = force_segments(ContactFrame(np.zeros((2, 3)), np.array([[0, 0, 1.0], [0, 0, 99.0]])), 2.0, 1.0)
    assert ends[:, 2] == pytest.approx([0.2, 0.5]) and not starts.any()  # the longest arrow is half of the size


def test_saved_contacts_are_drawn(tmp_path):
    sim = Simulator(Path(__file__).parents[2] / "scenes" / "stack.usda")
    outputs = ("body_position", "body_rotation", "contact_points", "contact_point_forces")
    saved = sim.rollout(4, outputs=outputs).save(tmp_path / "motion.usda")[0]
    with_arrows, without = (render_stage(saved, times=[4.0], contacts=on)[0].astype(int) for on in (True, False))
    changed = np.abs(with_arrows - without).max(axis=2) > 30
    assert changed.any() and changed.mean() < 0.2
