"""Motions as binary glTF, read back by another library."""

from __future__ import annotations

import json

import numpy as np
import pytest

from page_support import ball_page, textured_stage, tumbling
from warpsim.core.errors import InputError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.view.gltf import glb_bytes, write_glb
from warpsim.view.gltf.document import Document
from warpsim.view.gltf.shapes import item_surface
from warpsim.view.items.item import BOX, CAPSULE, SPHERE, TAPERED, Item, Look
from warpsim.view.page import CloudDrawable, CurveDrawable, Page, SurfaceDrawable, Take
from warpsim.view.page.content import BodyInfo
from warpsim.view.page.scene_content import motion_take
from warpsim.view.page.stage_content import stage_page

pygltflib = pytest.importorskip("pygltflib", reason="pygltflib reads glTF")

WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
TYPES = {5126: "<f4", 5125: "<u4"}
Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""(x, y, z) with z up → (x, z, −y) with y up."""


def numbers(file, index: int) -> np.ndarray:
    """(count, width) of an accessor."""
    accessor = file.accessors[index]
    view = file.bufferViews[accessor.bufferView]
    start = view.byteOffset + (accessor.byteOffset or 0)
    width = WIDTHS[accessor.type]
    flat = np.frombuffer(file.binary_blob(), TYPES[accessor.componentType], accessor.count * width, start)
    return flat.reshape(accessor.count, width)


def tracks(file) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """(USD path of a node, what is animated) → times and values."""
    found = {}
    for channel in file.animations[0].channels:
        sampler = file.animations[0].samplers[channel.sampler]
        path = file.nodes[channel.target.node].extras["path"]
        found[path, channel.target.path] = (numbers(file, sampler.input)[:, 0], numbers(file, sampler.output))
    return found


@pytest.mark.parametrize(
    ("kind", "size", "volume"),
    [
        (SPHERE, (0.5, 0.0, 0.0), 4.0 / 3.0 * np.pi * 0.5**3),
        (BOX, (0.1, 0.2, 0.3), 8.0 * 0.1 * 0.2 * 0.3),
        (CAPSULE, (0.2, 0.3, 0.0), np.pi * 0.04 * 0.6 + 4.0 / 3.0 * np.pi * 0.2**3),
        (TAPERED, (0.3, 0.3, 0.5), np.pi * 0.09),
        (TAPERED, (0.3, 0.0, 0.5), np.pi * 0.09 / 3.0),
    ],
)
@pytest.mark.parametrize("mirror", [1.0, -1.0])
def test_shapes_are_closed_and_face_outward(kind, size, volume, mirror, rng):
    matrix = np.eye(4)
    matrix[:3, :3] = rng.normal(size=(3, 3))
    matrix[:3, :3] *= mirror * np.sign(np.linalg.det(matrix[:3, :3]))
    matrix[:3, 3] = rng.normal(size=3)
    surface = item_surface(Item("/S", kind, np.array(size), matrix, np.zeros(3), None), 1.0)
    a, b, c = (surface.points[surface.faces[:, k]] for k in range(3))
    # Divergence theorem: one sixth of a·(b × c), summed over triangles that face outward.
    found = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0
    wanted = volume * abs(np.linalg.det(matrix[:3, :3]))
    assert found == pytest.approx(wanted, rel=0.02)
    across = np.cross(b - a, c - a)
    solid = np.linalg.norm(across, axis=1) > 1e-12
    for k in range(3):
        assert (np.einsum("ij,ij->i", across, surface.normals[surface.faces[:, k]])[solid] > 0.0).all()


def test_poses_are_read_back(tmp_path, rng):
    motion = tumbling(40, 3, rng)
    bodies = [BodyInfo(f"/W/B{k}", 1.0 + k) for k in range(3)]
    page = Page("tumble", bodies, [], [motion_take(motion, "motion")])
    file = pygltflib.GLTF2().load(str(write_glb(tmp_path / "motion.glb", page)))
    assert file.asset.version == "2.0" and file.scene == 0
    root = file.nodes[file.scenes[0].nodes[0]]
    x, y, z, w = root.rotation
    assert quat_to_matrix(np.array([w, x, y, z])) == pytest.approx(Y_UP, abs=1e-12)
    found = tracks(file)
    assert len(found) == 6
    for k, body in enumerate(bodies):
        times, places = found[body.path, "translation"]
        assert times == pytest.approx(motion.times, abs=1e-6)
        assert places == pytest.approx(motion.positions[:, k], abs=1e-6)
        turns = found[body.path, "rotation"][1][:, [3, 0, 1, 2]]
        assert quat_to_matrix(turns.astype(float)) == pytest.approx(quat_to_matrix(motion.rotations[:, k]), abs=1e-6)
        assert (np.einsum("ij,ij->i", turns[1:], turns[:-1]) > 0.0).all()  # viewers go the short way
        node = next(n for n in file.nodes if n.extras.get("path") == body.path)
        assert node.extras["mass"] == body.mass


def test_the_structure_is_that_of_a_glb_file(tmp_path):
    data = glb_bytes(ball_page())
    assert data == glb_bytes(ball_page())
    assert data[:4] == b"glTF" and int.from_bytes(data[8:12], "little") == len(data)
    length = int.from_bytes(data[12:16], "little")
    assert data[16:20] == b"JSON" and length % 4 == 0
    content = json.loads(data[20 : 20 + length])
    size = content["buffers"][0]["byteLength"]
    for view in content["bufferViews"]:
        assert view["byteOffset"] % 4 == 0 and view["byteOffset"] + view["byteLength"] <= size
    (tmp_path / "ball.glb").write_bytes(data)
    file = pygltflib.GLTF2().load(str(tmp_path / "ball.glb"))
    names = {node.extras.get("path") for node in file.nodes}
    assert {"/World/Ball", "/World/Ball/Shape", "/World/Box", "/World/Floor"} <= names
    ball = next(node for node in file.nodes if node.extras.get("path") == "/World/Ball/Shape")
    material = file.materials[file.meshes[ball.mesh].primitives[0].material]
    assert material.pbrMetallicRoughness.baseColorFactor == pytest.approx([0.8, 0.02, 0.02, 1.0])
    after = tracks(file)["/World/Ball", "translation"][1]  # the ghost is left out
    assert after[1] == pytest.approx([0.0, 0.0, 1.5])
    for node in file.nodes:
        if node.mesh is not None:
            primitive = file.meshes[node.mesh].primitives[0]
            points = numbers(file, primitive.attributes.POSITION)
            accessor = file.accessors[primitive.attributes.POSITION]
            assert points.min(axis=0) == pytest.approx(accessor.min) and points.max(axis=0) == pytest.approx(
                accessor.max
            )
            assert numbers(file, primitive.indices).max() < len(points)


def test_the_camera_sees_from_a_500th_of_the_scene_to_200_times_its_size(tmp_path):
    file = pygltflib.GLTF2().load(str(write_glb(tmp_path / "ball.glb", ball_page())))
    lens = file.cameras[0].perspective
    assert lens.zfar / lens.znear == pytest.approx(500.0 * 200.0)


def test_moving_points_are_morph_targets(tmp_path, rng):
    frames, side = 200, 4
    times = np.linspace(0.0, 1.0, frames)
    points = rng.normal(size=(1, side, 3)) + np.sin(times)[:, None, None] * rng.normal(size=(1, side, 3))
    things = [
        SurfaceDrawable("/Cloth", np.array([[0, 1, 2], [1, 3, 2]]), np.full(3, 0.5)),
        CloudDrawable("/Water", np.full(3, 0.5), 0.01),
        CurveDrawable("/Rope", np.array([side]), np.full(3, 0.5), 0.01),
    ]
    take = Take(
        "motion", times, np.zeros((frames, 0, 3)), np.zeros((frames, 0, 4)), points={t.path: points for t in things}
    )
    file = pygltflib.GLTF2().load(str(write_glb(tmp_path / "soft.glb", Page("soft", [], things, [take]))))
    found = tracks(file)
    for thing in things:
        node = next(n for n in file.nodes if n.extras.get("path") == thing.path)
        primitive = file.meshes[node.mesh].primitives[0]
        rest = numbers(file, primitive.attributes.POSITION)
        moved = np.array([numbers(file, target["POSITION"]) for target in primitive.targets])
        for target, rows in zip(primitive.targets, moved, strict=True):  # bounds: glTF demands them of positions alone
            given = file.accessors[target["POSITION"]]
            assert given.min == pytest.approx(rows.min(axis=0)) and given.max == pytest.approx(rows.max(axis=0))
            assert "NORMAL" not in target or file.accessors[target["NORMAL"]].min in (None, [])
        keys, weights = found[thing.path, "weights"]
        weights = weights.reshape(len(keys), len(moved))
        assert keys[0] == 0.0 and keys[-1] == pytest.approx(1.0)
        shown = rest + np.einsum("kt,tij->kij", weights, moved)
        if thing.path == "/Water":
            shown = shown.reshape(len(keys), side, 6, 3).mean(axis=2)
        wanted = np.stack([np.interp(keys, times, points[:, i, a]) for i in range(side) for a in range(3)], axis=1)
        assert shown.reshape(len(keys), -1) == pytest.approx(wanted, abs=1e-5)


def test_textures_come_along(tmp_path):
    page = stage_page(textured_stage(tmp_path), "square")
    file = pygltflib.GLTF2().load(str(write_glb(tmp_path / "square.glb", page)))
    primitive = file.meshes[0].primitives[0]
    assert file.materials[primitive.material].pbrMetallicRoughness.baseColorTexture.index == 0
    view = file.bufferViews[file.images[0].bufferView]
    picture = file.binary_blob()[view.byteOffset : view.byteOffset + view.byteLength]
    assert picture == (tmp_path / "two.png").read_bytes()
    points, uvs = (numbers(file, n) for n in (primitive.attributes.POSITION, primitive.attributes.TEXCOORD_0))
    assert uvs[:, 0] == pytest.approx(0.5 * (points[:, 0] + 1.0))
    assert uvs[:, 1] == pytest.approx(1.0 - 0.5 * points[:, 2])  # v goes downward


def test_only_what_is_clear_is_blended():
    document, color = Document(), np.array([0.2, 0.4, 0.6])
    for opacity, mode in ((1.0, None), (0.3, "BLEND")):
        place = document.material(color, Look(opacity=opacity), textured=False)
        made = document.content["materials"][place]
        assert made.get("alphaMode") == mode
        assert made["pbrMetallicRoughness"]["baseColorFactor"] == [0.2, 0.4, 0.6, opacity]


def test_errors(tmp_path, rng):
    take = motion_take(tumbling(3, 1, rng), "before", ghost=True)
    with pytest.raises(InputError, match="ghosts"):
        glb_bytes(Page("none", [BodyInfo("/B")], [], [take]))
    with pytest.raises(InputError, match="folder"):
        write_glb(tmp_path / "no" / "x.glb", ball_page())
