"""Robots whose colliders are kept out of sight, against closed forms, MuJoCo's rays and the files of its converter.

MJCF files commonly have colliders in group 3, which viewers do not show, and finer meshes in group 2; in USD these
colliders have purpose guide.
"""

from __future__ import annotations

from collections import Counter

import mujoco
import numpy as np
import pytest
import torch
from PIL import Image
from pxr import Usd, UsdGeom, UsdPhysics

from render_support import BLACK, HEIGHT, SIZE, WIDTH, backdrop, coverage, new_stage, silhouette, top_view
from warpsim.cli.main import main
from warpsim.core.errors import SceneError
from warpsim.io.mjcf import read_mjcf
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import open_stage, read_usd
from warpsim.view.raycast import Camera, render_rollout, render_stage

PIXEL = (4.0 / HEIGHT) ** 2
"""m² in the top view."""
MJCF = """<mujoco><worldbody>
  <body name="bare"><freejoint/><geom size=".5" group="3" rgba="0 0 0 1"/></body>
  <body name="dressed" pos="2 0 0"><freejoint/><geom type="box" size=".6 .6 .6" group="3" rgba="0 0 0 1"/>
    <geom type="box" size=".5 .4 .3" group="2" contype="0" conaffinity="0" mass="0" rgba="0 0 0 1"/></body>
  <body name="crumbs" pos="-2 0 0"><freejoint/><geom type="box" size=".5 .4 .3" group="3" rgba="0 0 0 1"/>
    <geom size=".1" group="2" contype="0" conaffinity="0" mass="0" rgba="0 0 0 1"/></body>
  <geom type="box" size=".2 .2 .2" pos="0 1.5 0" group="3" rgba="0 0 0 1"/>
</worldbody></mujoco>"""
AREAS = (0.8, np.pi * 0.25, 0.8)
"""m² from above of the three bodies, from left to right: the collider, the collider, the looks."""


def thirds(mask: np.ndarray) -> list[float]:
    """Covered areas of the left, middle and right third of a picture, m²."""
    return [part.sum() * PIXEL for part in np.split(mask, 3, axis=1)]


def purpose(prim: Usd.Prim, value: str) -> Usd.Prim:
    UsdGeom.Imageable(prim).CreatePurposeAttr(value)
    return prim


def test_bodies_without_looks_are_drawn_by_their_colliders():
    stage, _ = export_scene(read_mjcf(MJCF))
    np.testing.assert_allclose(thirds(silhouette(stage, top_view())), AREAS, rtol=0.02)


def test_a_rollout_shows_the_same():
    scene = read_mjcf(MJCF)

    class AtRest:
        """As a `Trajectory` of one row and one world."""

        times = (0.0,)

        def body_position(self, name):
            return torch.from_numpy(next(b for b in scene.bodies if b.name == name).position[None, None])

        def body_rotation(self, name):
            return torch.from_numpy(next(b for b in scene.bodies if b.name == name).rotation[None, None])

    camera = top_view()
    (image,) = render_rollout(scene, AtRest(), camera=camera, **SIZE)
    np.testing.assert_allclose(thirds(coverage(image, backdrop(camera))), AREAS, rtol=0.02)


def test_colliders_can_be_asked_for():
    """All of them, the static one too, and no looks."""
    stage, _ = export_scene(read_mjcf(MJCF))
    mask = silhouette(stage, top_view(), colliders=True)
    np.testing.assert_allclose(thirds(mask), (0.8, np.pi * 0.25 + 0.16, 1.44), rtol=0.02)


def test_what_is_switched_off_is_not_replaced():
    """A body whose looks blink shows nothing while they are off; helpers that do not collide stand for nothing."""
    stage, world = new_stage()
    blinking, helper = author.body(world, "Blinking"), author.body(world, "Helper", position=(1.5, 0, 0))
    looks = author.sphere(blinking, "Looks", 0.5, collides=False, color=BLACK)
    visibility = UsdGeom.Imageable(looks).CreateVisibilityAttr()
    visibility.Set("inherited", 0.0)
    visibility.Set("invisible", 1.0)
    purpose(author.sphere(blinking, "Collider", 0.5, color=BLACK), "guide")
    purpose(author.sphere(helper, "Frame", 0.5, collides=False, color=BLACK), "guide")
    camera = top_view()
    pictures = render_stage(stage, times=[0.0, 1.0], camera=camera, **SIZE)
    areas = [coverage(image, backdrop(camera)).sum() * PIXEL for image in pictures]
    np.testing.assert_allclose(areas, [np.pi * 0.25, 0.0], atol=0.02)


def test_hidden_colliders_are_named_as_the_way_out():
    stage, world = new_stage()
    ball = author.sphere(author.body(world, "Body"), "Ball", 0.5)
    UsdGeom.Imageable(ball).MakeInvisible()
    with pytest.raises(SceneError, match="--colliders"):
        render_stage(stage, times=[0.0])
    assert silhouette(stage, top_view(), colliders=True).sum() * PIXEL == pytest.approx(np.pi * 0.25, rel=0.02)


def test_purposes_survive():
    """Hidden colliders are guides in USD, and hidden again when they are read."""
    stage, _ = export_scene(read_mjcf(MJCF))
    found = {prim.GetName(): str(UsdGeom.Imageable(prim).ComputePurpose()) for prim in gprims(stage)}
    assert Counter(found.values()) == {"guide": 4, "default": 2}
    assert not any(shape.visible for shape in read_usd(stage).shapes)


def test_mjcf_is_drawn_as_what_it_converts_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.xml").write_text(
        MJCF.replace(
            "</mujoco>",
            '<keyframe><key name="up" qpos="0 0 1 1 0 0 0 2 0 0 1 0 0 0 0 0 0 1 0 0 0"/></keyframe></mujoco>',
        )
    )
    assert main(["convert", "robot.xml", "robot.usda"]) == 0
    for arguments in (["robot.usda", "-o", "a.png"], ["robot.xml", "-o", "b.png"]):
        assert main(["render", *arguments, "--size", "60x40"]) == 0
    assert main(["render", "robot.xml", "-o", "c.png", "--size", "60x40", "--keyframe", "up"]) == 0
    images = [np.asarray(Image.open(f"{name}.png")) for name in "abc"]
    np.testing.assert_array_equal(images[1], images[0])
    assert (images[2] != images[0]).any()


def gprims(stage: Usd.Stage) -> list[Usd.Prim]:
    return [prim for prim in stage.Traverse(Usd.TraverseInstanceProxies()) if prim.IsA(UsdGeom.Gprim)]


def hidden_colliders(stage: Usd.Stage) -> Counter[str]:
    """Body's name → how many of its colliders are guides."""
    counts: Counter[str] = Counter()
    for prim in gprims(stage):
        if prim.HasAPI(UsdPhysics.CollisionAPI) and UsdGeom.Imageable(prim).ComputePurpose() == "guide":
            while not prim.HasAPI(UsdPhysics.RigidBodyAPI):
                prim = prim.GetParent()
            counts[str(prim.GetName())] += 1
    return counts


@pytest.mark.parametrize("robot", ["franka_emika_panda", "so_arm100", "unitree_a1"])
def test_colliders_are_hidden_as_by_mujocos_converter(assets_dir, robot):
    folder = assets_dir / robot
    ours, _ = export_scene(read_mjcf(next((folder / "mjcf").glob("*.xml")), strict=False))
    theirs = open_stage(next((folder / "usd").glob("*.usda")))
    assert hidden_colliders(ours) == hidden_colliders(theirs)
    assert sum(hidden_colliders(ours).values()) > 10


def seen_by_mujoco(model: mujoco.MjModel, camera: Camera) -> np.ndarray:
    """Share of each pixel that colliders cover: that of its four rays which meet one in MuJoCo."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    groups = np.array([0, 0, 0, 1, 0, 0], dtype=np.uint8)
    hits = np.zeros((2 * HEIGHT, 2 * WIDTH), dtype=bool)
    for row, column in np.ndindex(*hits.shape):
        x = ((column + 0.5) / WIDTH - 1) * camera.half_width
        y = (1 - (row + 0.5) / HEIGHT) * camera.half_height
        start = camera.position + x * camera.right + y * camera.up
        hits[row, column] = mujoco.mj_ray(model, data, start, camera.forward, groups, 1, -1, np.zeros(1, np.int32)) >= 0
    return hits.reshape(HEIGHT, 2, WIDTH, 2).mean(axis=(1, 3))


@pytest.mark.parametrize(
    ("robot", "missing"), [pytest.param("skydio_x2", 0.03, marks=pytest.mark.long), ("unitree_a1", 0.0)]
)
def test_robots_are_seen_where_mujocos_rays_meet_them(assets_dir, robot, missing):
    """These two have no looks in their MJCF files as they stand here.

    Rays that see nothing in MuJoCo see nothing here; the others see the same, but for those that pass between the rims
    of ellipsoids and the meshes inside them that USD has instead, which only the first robot has.
    """
    path = next((assets_dir / robot / "mjcf").glob("*.xml"))
    stage, _ = export_scene(read_mjcf(path, strict=False))
    camera = top_view(0.4)
    wanted = seen_by_mujoco(mujoco.MjModel.from_xml_path(str(path)), camera)
    covered = silhouette(stage, camera)
    assert wanted.sum() > 500
    assert (covered - wanted).max() < 0.01
    lost = wanted - covered > 0.01
    assert (wanted - covered)[lost].sum() <= missing * wanted.sum()
