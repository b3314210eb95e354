"""Bytes of glTF files: padding, pictures of other kinds, keys of moving points, the box that the camera sees."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

from page_support import ball_page
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.view.gltf import glb_bytes, write
from warpsim.view.gltf.document import Document
from warpsim.view.gltf.shapes import Surface, item_surface, joined, smooth_normals
from warpsim.view.items.item import BOX, CAPSULE, ENDLESS, PLANE, SPHERE, TAPERED, Item, Look
from warpsim.view.items.textures import Texture
from warpsim.view.page import CloudDrawable, CurveDrawable, Page, Take
from warpsim.view.page.content import BodyInfo, RigidDrawable


def parts(data: bytes) -> tuple[dict, bytes]:
    """JSON and buffer of a file."""
    length = int.from_bytes(data[12:16], "little")
    rest = data[20 + length :]
    return json.loads(data[20 : 20 + length]), rest[8:] if rest else b""


@pytest.mark.parametrize("size", range(1, 10))
def test_views_begin_at_multiples_of_four_and_end_where_their_bytes_do(size):
    document = Document()
    data = bytes(range(1, size + 1))
    document.view(data)
    document.view(b"next", target=34963)
    content, buffer = parts(document.to_bytes())
    first, second = content["bufferViews"]
    assert first == {"buffer": 0, "byteOffset": 0, "byteLength": size}
    start = -(-size // 4) * 4
    assert second == {"buffer": 0, "byteOffset": start, "byteLength": 4, "target": 34963}
    assert buffer == data + bytes(start - size) + b"next"
    assert content["buffers"] == [{"byteLength": start + 4}]


@pytest.mark.parametrize("name", ["a", "ab", "abc", "abcd"])
def test_the_text_is_filled_with_spaces_and_the_header_knows_its_length(name):
    document = Document()
    document.add("nodes", {"name": name})
    data = document.to_bytes()
    length = int.from_bytes(data[12:16], "little")
    assert length % 4 == 0 and int.from_bytes(data[4:8], "little") == 2
    text = data[20 : 20 + length]
    assert text.rstrip(b" ").endswith(b"}") and len(text) - len(text.rstrip(b" ")) < 4
    assert len(data) == 20 + length == int.from_bytes(data[8:12], "little")  # without numbers there is no buffer


def test_numbers_have_their_types_and_bounds():
    document = Document()
    document.floats(np.array([1.0, 3.0, -2.0]), bounds=True)
    document.floats(np.arange(8.0).reshape(4, 2))
    document.indices(np.array([[2, 1, 0], [3, 2, 1]]))
    content, buffer = parts(document.to_bytes())
    one, two, three = content["accessors"]
    assert (one["type"], one["count"], one["min"], one["max"]) == ("SCALAR", 3, [-2.0], [3.0])
    assert (two["type"], two["count"], two["componentType"]) == ("VEC2", 4, 5126) and "min" not in two
    assert (three["type"], three["count"], three["componentType"]) == ("SCALAR", 6, 5125)
    assert np.frombuffer(buffer, "<u4", 6, content["bufferViews"][2]["byteOffset"]).tolist() == [2, 1, 0, 3, 2, 1]


def picture(kind: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (3, 2), (10, 200, 30)).save(out, kind)
    return out.getvalue()


def test_pictures_that_gltf_knows_are_kept_and_others_become_png():
    for kind, mime, kept in (("PNG", "image/png", True), ("JPEG", "image/jpeg", True), ("WEBP", "image/webp", False)):
        document = Document()
        data = picture(kind)
        look = Look(texture=Texture("/a", mime, data, "st"))
        for _ in range(2):
            place = document.material(np.zeros(3), look, textured=True)
        assert place == 0 and len(document.content["images"]) == 1
        content, buffer = parts(document.to_bytes())
        (image,) = content["images"]
        view = content["bufferViews"][image["bufferView"]]
        found = buffer[view["byteOffset"] : view["byteOffset"] + view["byteLength"]]
        assert (found == data) is kept and image["mimeType"] == (mime if kept else "image/png")
        with Image.open(io.BytesIO(found)) as shown:
            assert shown.size == (3, 2)
        surface = content["materials"][0]["pbrMetallicRoughness"]
        assert surface["baseColorFactor"] == [1.0, 1.0, 1.0, 1.0] and surface["baseColorTexture"] == {"index": 0}
        bare = document.material(np.array([0.5, 2.0, -1.0]), look, textured=False)
        surface = document.content["materials"][bare]["pbrMetallicRoughness"]
        assert bare == 1 and surface["baseColorFactor"] == [0.5, 1.0, 0.0, 1.0] and "baseColorTexture" not in surface


def writer(frames: int) -> write._Writer:
    take = Take("motion", np.linspace(3.0, 4.0, frames), np.zeros((frames, 0, 3)), np.zeros((frames, 0, 4)))
    return write._Writer(Page("p", [], [], [take]), 0)


def test_morph_targets_are_as_many_as_there_is_room_for(monkeypatch):
    """At most 60, the first and last frame among them; each takes 24 bytes a vertex; grains have six."""
    cloud, curve = CloudDrawable("/w", np.zeros(3), 0.1), CurveDrawable("/c", np.array([4]), np.zeros(3), 0.1)
    assert len(writer(500)._keys(curve, 4)) == 60 and writer(500)._keys(curve, 4)[[0, -1]].tolist() == [0, 499]
    assert writer(7)._keys(curve, 4).tolist() == list(range(7))
    monkeypatch.setattr(write, "MORPH_BYTES", 24 * 4 * 5)
    assert writer(500)._keys(curve, 4).tolist() == [0, 125, 250, 374, 499]
    assert writer(500)._keys(cloud, 4).tolist() == [0, 499]  # two at least
    assert writer(1)._keys(curve, 0).tolist() == [0]


def test_polylines_are_pairs_of_neighbors():
    assert write._segments(np.array([3, 2, 4])).tolist() == [[0, 1], [1, 2], [3, 4], [5, 6], [6, 7], [7, 8]]
    assert write._segments(np.array([], dtype=int)).shape == (0, 2)


def test_the_box_holds_what_moves_as_far_as_it_reaches_and_no_plane():
    page = ball_page()
    low, high = write._bounds(page.drawables, page.takes[1], page.bodies)
    reach = np.sqrt(3.0) * 0.25  # of the ball's corners, however it turns
    assert low == pytest.approx([-1.0 - reach, -reach, 0.0]) and high == pytest.approx([1.0 + reach, 1.2, 1.5 + reach])
    still = write._bounds(page.drawables[:1], page.takes[1], page.bodies)
    assert still.tolist() == [[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]]  # a plane alone
    points = {"/w": np.array([[[0.0, 5.0, 0.0]], [[0.0, -7.0, 0.0]]])}
    take = Take("t", np.arange(2.0), np.zeros((2, 0, 3)), np.zeros((2, 0, 4)), points=points)
    assert write._bounds([], take, []).tolist() == [[0.0, -7.0, 0.0], [0.0, 5.0, 0.0]]
    hidden = RigidDrawable(page.drawables[1].item, False, True)
    assert np.array_equal(write._bounds([hidden], page.takes[1], page.bodies), still)


def test_the_camera_looks_at_the_middle_of_the_scene_with_its_up_upward():
    content, _ = parts(glb_bytes(ball_page()))
    node = next(node for node in content["nodes"] if node.get("camera") == 0)
    x, y, z, w = node["rotation"]
    turn = quat_to_matrix(np.array([w, x, y, z]))
    low, high = write._bounds(ball_page().drawables, ball_page().takes[1], ball_page().bodies)
    toward = 0.5 * (low + high) - node["translation"]
    assert -turn[:, 2] @ toward / np.linalg.norm(toward) > 0.99  # glTF's cameras look along −z
    assert turn[2, 1] > 0.9 and turn[2, 0] == pytest.approx(0.0, abs=1e-9)
    lens = content["cameras"][0]["perspective"]
    size = np.ptp([low, high], axis=0).max()
    assert lens["znear"] == pytest.approx(size / 500) and lens["aspectRatio"] == pytest.approx(16 / 9)
    assert lens["yfov"] == pytest.approx(np.radians(35.0))


def test_things_hang_below_their_bodies_and_others_below_the_world():
    content, _ = parts(glb_bytes(ball_page()))
    nodes = content["nodes"]
    root = nodes[content["scenes"][0]["nodes"][0]]
    below = [nodes[k]["name"] for k in root["children"]]
    assert below == ["Ball", "Floor", "Box", "Camera"]
    ball = nodes[root["children"][0]]
    assert [nodes[k]["extras"]["path"] for k in ball["children"]] == ["/World/Ball/Shape"]
    assert ball["translation"] == [-1.0, 0.0, 0.5] and ball["rotation"] == [0.0, 0.0, 0.0, 1.0]


def test_times_begin_at_zero_and_a_still_take_has_no_animation():
    page = ball_page()
    late = Take("after", page.takes[1].times + 5.0, page.takes[1].positions, page.takes[1].rotations)
    content, buffer = parts(glb_bytes(Page("ball", page.bodies, page.drawables, [late])))
    times = content["accessors"][content["animations"][0]["samplers"][0]["input"]]
    assert (times["min"], times["max"]) == ([0.0], [2.0])
    still = Take("one", np.zeros(1), page.takes[1].positions[:1], page.takes[1].rotations[:1])
    content, _ = parts(glb_bytes(Page("ball", [BodyInfo("/World/Ball")], page.drawables, [still])))
    assert "animations" not in content and "mass" not in content["nodes"][0]["extras"]


def shape(kind: int, *size: float) -> Surface:
    return item_surface(Item("/S", kind, np.array(size), np.eye(4), np.zeros(3), None), 7.0)


def test_shapes_have_their_sizes():
    for surface, low, high in (
        (shape(SPHERE, 0.5, 0.0, 0.0), [-0.5, -0.5, -0.5], [0.5, 0.5, 0.5]),
        (shape(BOX, 0.1, 0.2, 0.3), [-0.1, -0.2, -0.3], [0.1, 0.2, 0.3]),
        (shape(CAPSULE, 0.2, 0.3, 0.0), [-0.2, -0.2, -0.5], [0.2, 0.2, 0.5]),
        (shape(TAPERED, 0.3, 0.1, 0.5), [-0.3, -0.3, -0.5], [0.3, 0.3, 0.5]),
        (shape(PLANE, 2.0, 3.0, 0.0), [-2.0, -3.0, 0.0], [2.0, 3.0, 0.0]),
        (shape(PLANE, ENDLESS, ENDLESS, 0.0), [-7.0, -7.0, 0.0], [7.0, 7.0, 0.0]),
    ):
        assert surface.points.min(0) == pytest.approx(np.array(low)) and surface.points.max(0) == pytest.approx(high)
        assert np.linalg.norm(surface.normals, axis=1) == pytest.approx(1.0)
        assert surface.faces.min() == 0 and surface.faces.max() == len(surface.points) - 1


def test_normals_of_round_shapes_are_those_of_their_forms():
    ball = shape(SPHERE, 0.5, 0.0, 0.0)
    assert ball.normals == pytest.approx(ball.points / 0.5, abs=1e-12)
    capsule = shape(CAPSULE, 0.2, 0.3, 0.0)
    middle = np.clip(capsule.points[:, 2:], -0.3, 0.3) * [0, 0, 1]
    assert capsule.normals == pytest.approx((capsule.points - middle) / 0.2, abs=1e-9)
    cone = shape(TAPERED, 0.3, 0.1, 0.5)
    side = np.abs(cone.normals[:, 2]) < 0.9
    assert cone.normals[side][:, 2] == pytest.approx(0.2 / np.hypot(0.2, 1.0))
    assert (cone.normals[~side][:, 2] == np.sign(cone.points[~side][:, 2])).all()


def test_surfaces_are_joined_with_their_own_vertices():
    one, two = shape(PLANE, 1.0, 1.0, 0.0), shape(PLANE, 2.0, 2.0, 0.0)
    both = joined([one, two, one])
    assert np.array_equal(both.points[both.faces[2]], two.points[two.faces[0]])
    assert np.array_equal(both.points[both.faces[4]], one.points[one.faces[0]])


def test_smooth_normals_weigh_triangles_by_area():
    points = np.array([[0.0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 1], [9, 9, 9]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])  # 2 m² toward +z, 1 m² toward +x
    normals = smooth_normals(points, faces)
    assert normals[1] == pytest.approx([0, 0, 1]) and normals[3] == pytest.approx([1, 0, 0])
    assert normals[0] == pytest.approx(np.array([1.0, 0.0, 2.0]) / np.sqrt(5.0))
    assert normals[4] == pytest.approx([0, 0, 1])  # of no triangle
