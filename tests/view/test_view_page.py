"""Pages: what they weigh, how exactly they hold a motion, and that they need nothing from outside."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from PIL import Image
from pxr import Usd, UsdGeom

from page_support import BALL, ball_page, block, textured_stage, tumbling, unpacked
from tools import build_three
from tools.bench_view import cloth_page, waving
from warpsim.cli.main import main
from warpsim.core.errors import InputError
from warpsim.io.load import load_scene
from warpsim.io.usd import author
from warpsim.io.usd.motion import ContactFrame
from warpsim.scene import Body, Joint, Scene, Shape
from warpsim.sim.simulator import Simulator
from warpsim.view.items.triangles import make_triangles
from warpsim.view.page import Page, Take, page_html, write_page
from warpsim.view.page.content import BodyInfo
from warpsim.view.page.focus import page_focus
from warpsim.view.page.joint_values import joint_values
from warpsim.view.page.meshes import pack_mesh
from warpsim.view.page.pictures import picture_url
from warpsim.view.page.scene_content import motion_take, motions_page
from warpsim.view.page.series import restored, squeezed
from warpsim.view.page.stage_content import stage_page

PROJECT = Path(__file__).resolve().parents[2]
SCENES = PROJECT / "scenes"


def _humanoid_page(frames: int) -> tuple[Page, object]:
    path = SCENES / "humanoid.usda"
    scene = load_scene(path)
    motion = waving(scene, frames)
    return motions_page(scene, path, [("motion", motion)], title="humanoid"), motion


@pytest.mark.parametrize("frames", [1, 2, 3, 50])
def test_series_come_back_exactly(frames, rng):
    levels = rng.integers(0, 65536, (frames, 7), dtype=np.uint16)
    assert (restored(squeezed(levels), frames, 7) == levels).all()


def test_poses_are_kept_to_a_ten_thousandth_of_the_scene(rng):
    motion = tumbling(200, 5, rng)
    page = Page("t", [BodyInfo(f"/B{k}") for k in range(5)], [], [motion_take(motion, "motion")])
    held = unpacked(page_html(page))
    size = np.ptp(motion.positions.reshape(-1, 3), axis=0).max()
    assert np.abs(held.positions(0) - motion.positions).max() <= 1e-4 * size
    # |⟨a, b⟩| = cos(θ/2) for rotations θ apart, whatever their signs; sin is what small angles show in.
    a, b = held.rotations(0), motion.rotations
    sign = np.sign(np.einsum("fbi,fbi->fb", a, b))[..., None]
    assert 2.0 * np.linalg.norm(a * sign - b, axis=-1).max() <= 1e-4
    assert (np.einsum("fbi,fbi->fb", a[1:], a[:-1]) > 0.9).all()  # neighbors can be interpolated


def test_a_thousand_frames_of_a_humanoid_fit_a_megabyte():
    page, motion = _humanoid_page(1000)
    text = page_html(page)
    assert len(text.encode()) <= 1_000_000
    held = unpacked(text)
    size = np.ptp(motion.positions.reshape(-1, 3), axis=0).max()
    assert np.abs(held.positions(0) - motion.positions).max() <= 1e-4 * size
    take = held.header["takes"][0]
    assert np.abs(held.series(take["values"]) - motion.q).max() <= 1e-4
    assert (held.floats(take["times"], 1000) == motion.times).all()


def test_a_thousand_frames_of_a_cloth_fit_fifteen_megabytes():
    page = cloth_page()
    text = page_html(page)
    assert len(text.encode()) < 15_000_000
    points = page.takes[0].points["/Cloth"]
    held = unpacked(text)
    decoded = held.series(held.header["takes"][0]["points"]["/Cloth"]).reshape(points.shape)
    assert np.abs(decoded - points).max() <= 1e-4 * np.ptp(points.reshape(-1, 3), axis=0).max()


def test_the_same_content_gives_the_same_bytes(tmp_path):
    first, second = (write_page(tmp_path / name, _humanoid_page(20)[0]).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


def test_nothing_is_asked_of_the_outside():
    text = page_html(ball_page())
    assert "default-src 'none'" in text and "connect-src 'none'" in text
    assert re.findall(r'(?:src|href)\s*=\s*"([^"]*)"', text) == ["data:,"]
    viewer = text[text.rindex("<script>") :]
    assert not re.findall(r"\b(?:fetch|XMLHttpRequest|WebSocket|importScripts|import)\s*\(", viewer)
    assert set(re.findall(r"https?://[^\s\"'`)]+", viewer)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_titles_are_escaped():
    text = page_html(Page("<b>&@@DATA@@", [], [], [_still()]))
    assert "<title>&lt;b&gt;&amp;@@DATA@@</title>" in text
    assert unpacked(text).header["title"] == "<b>&@@DATA@@"


def _still() -> Take:
    return Take("pose", np.zeros(1), np.zeros((1, 0, 3)), np.zeros((1, 0, 4)))


def test_a_page_without_a_take_is_refused(tmp_path):
    with pytest.raises(InputError, match="at least one take"):
        page_html(Page("t", [], [], []))
    with pytest.raises(InputError, match="no folder"):
        write_page(tmp_path / "none" / "a.html", ball_page())


def test_a_motion_that_is_not_finite_is_refused():
    page = ball_page()
    page.takes[1].positions[2, 0, 1] = np.nan
    with pytest.raises(InputError, match="not finite from frame 2 on"):
        page_html(page)


def test_contacts_come_back(rng):
    frames = [ContactFrame(rng.normal(size=(n, 3)), 100.0 * rng.normal(size=(n, 3))) for n in (0, 3, 1, 0, 2)]
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (5, 1, 1))
    take = Take("t", np.arange(5.0), np.zeros((5, 1, 3)), upright, contacts=frames)
    held = unpacked(page_html(Page("t", [BodyInfo(BALL)], [], [take])))
    contacts = held.header["takes"][0]["contacts"]
    counts = np.frombuffer(held.data, "<u2", 5, contacts["counts"])
    assert counts.tolist() == [0, 3, 1, 0, 2]
    forces = np.concatenate([frame.forces for frame in frames])
    assert np.abs(held.series(contacts["forces"]) - forces).max() <= 1e-4 * np.ptp(forces, axis=0).max()


def test_meshes_keep_their_form(rng):
    angles = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    vertices = np.concatenate([np.c_[ring, np.zeros(24)], np.c_[0.5 * ring, np.full(24, 2.0)]])
    k, n = np.arange(24), (np.arange(24) + 1) % 24
    triangles = make_triangles(vertices, np.concatenate([np.c_[k, n, k + 24], np.c_[n, n + 24, k + 24]]))
    packed = pack_mesh(triangles)
    corners = packed.low + (packed.high - packed.low) / 65535 * packed.vertices[packed.faces]
    assert np.abs(corners - triangles.corners).max() <= 1e-4
    assert len(packed.vertices) == 48  # shared by the faces around them: the wall is smooth


def test_textures_are_held_and_large_ones_are_small(tmp_path):
    (drawable,) = stage_page(textured_stage(tmp_path), "square").drawables
    uvs, corners = drawable.item.mesh.uvs, drawable.item.mesh.corners
    assert np.allclose(uvs[..., 0], 0.5 * (corners[..., 0] + 1.0)) and np.allclose(uvs[..., 1], 0.5 * corners[..., 2])
    packed = pack_mesh(drawable.item.mesh)
    low, high = packed.uv_range
    assert np.allclose((low + (high - low) / 65535 * packed.uvs)[packed.faces], uvs, atol=1e-4)
    texture = drawable.item.look.texture
    assert texture.data == (tmp_path / "two.png").read_bytes()
    assert picture_url(texture) == "data:image/png;base64," + base64.b64encode(texture.data).decode()
    Image.new("RGB", (4096, 2048), (10, 200, 30)).save(tmp_path / "large.png")
    large = dataclasses.replace(texture, data=(tmp_path / "large.png").read_bytes())
    shown = Image.open(io.BytesIO(base64.b64decode(picture_url(large).partition(",")[2])))
    assert shown.size == (1024, 512) and shown.getpixel((5, 5)) == (10, 200, 30)


def test_joint_values_from_poses(rng):
    xml = """<mujoco><worldbody><body name="a" pos="0.1 0.2 0.3" quat="0.9 0.1 0.3 -0.2">
      <joint name="h" type="hinge" axis="1 2 3" pos="0.1 0 0.2" ref="20"/><geom size="0.1"/>
      <body name="b" pos="0 0.4 0" euler="10 20 30"><joint name="s" type="slide" axis="0 1 1"/><geom size="0.1"/></body>
      </body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    names = [model.body(k).name for k in range(1, model.nbody)]
    scene = Scene(
        bodies=[
            Body(name, None if k == 0 else names[0], model.body_pos[k + 1], model.body_quat[k + 1])
            for k, name in enumerate(names)
        ]
    )
    scene.joints = [_joint(model, k) for k in range(model.njnt)]
    angles = np.cumsum(rng.uniform(-1.5, 2.0, (40, 2)), axis=0)  # several whole turns
    positions, rotations = np.zeros((40, 2, 3)), np.zeros((40, 2, 4))
    for row, q in enumerate(angles):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        positions[row], rotations[row] = data.xpos[1:], data.xquat[1:]
    found = joint_values(scene, {name: k for k, name in enumerate(names)}, positions, rotations)
    turns = np.round((found[0, 0] - angles[0, 0]) / (2 * np.pi)) * 2 * np.pi  # the first frame's turn is not known
    assert np.abs(found - angles - [turns, 0.0]).max() < 1e-9


def _joint(model, k):
    joint = model.joint(k)
    kind = {int(mujoco.mjtJoint.mjJNT_HINGE): "hinge", int(mujoco.mjtJoint.mjJNT_SLIDE): "slide"}[int(joint.type[0])]
    body = model.body(int(joint.bodyid[0])).name
    return Joint(joint.name, kind, body, anchor=joint.pos, axis=joint.axis, reference=float(model.qpos0[k]))


def test_each_contact_is_an_output():
    scene = Scene(
        bodies=[Body("box", position=np.array([0.0, 0.0, 0.1]))],
        shapes=[
            Shape("cube", "box", "box", size=np.full(3, 0.1), density=500.0),
            Shape("floor", "plane"),
        ],
    )
    scene.joints = [Joint("free", "free", "box")]
    sim = Simulator(scene)
    outputs = ("body_position", "body_rotation", "contact_points", "contact_point_forces", "contact_force")
    start = torch.zeros(6, dtype=sim.torch_dtype, requires_grad=True)
    plain = sim.rollout(steps=300, outputs=outputs)
    taped = sim.rollout(steps=300, qd=start, outputs=outputs)
    points, forces = plain.numpy("contact_points")[-1, 0], plain.numpy("contact_point_forces")[-1, 0]
    acting = np.abs(forces).sum(axis=-1) > 0.0
    assert np.abs(forces.sum(axis=0) - [0.0, 0.0, 0.2**3 * 500.0 * 9.81]).max() < 1e-3  # it rests on its corners
    corners = np.array([[x, y] for x in (-0.1, 0.1) for y in (-0.1, 0.1)])
    found = points[acting]
    assert len(found) == 4 and np.abs(found[:, 2]).max() < 1e-3
    assert np.abs(found[:, None, :2] - corners).max(axis=2).min(axis=0).max() < 1e-3
    for name in ("contact_points", "contact_point_forces"):
        assert np.abs(taped.numpy(name) - plain.numpy(name)).max() < 1e-9
    motion = plain.motion()
    assert [len(frame.points) for frame in motion.contacts][-1] == 4
    page = plain.page()
    assert page.bodies[0].mass == pytest.approx(4.0)
    assert len(page.takes[0].contacts) == 301


def test_worlds_are_takes(tmp_path):
    sim = Simulator(SCENES / "pendulum.usda", worlds=3)
    trajectory = sim.rollout(steps=20)
    written = trajectory.save(tmp_path / "motion.html")
    assert written == [tmp_path / "motion.html"]
    held = unpacked(written[0].read_text(encoding="utf-8"))
    assert [take["name"] for take in held.header["takes"]] == ["world 0", "world 1", "world 2"]
    names = [body["path"] for body in held.header["bodies"]]
    for world in range(3):
        for column, name in enumerate(names):
            truth = trajectory.body_position(name)[:, world].numpy()
            assert np.abs(held.positions(world)[:, column] - truth).max() < 1e-4
    assert len(trajectory.page(worlds=[1]).takes) == 1


def test_an_animated_stage(tmp_path):
    stage = author.new_stage()
    world = author.world(stage)
    author.sphere(world, "Rider", 0.1, position=(0.0, 0.0, 0.0))
    rider = UsdGeom.Xformable(stage.GetPrimAtPath("/World/Rider"))
    rider.ClearXformOpOrder()
    move = rider.AddTranslateOp(opSuffix="path")
    cloth = UsdGeom.Mesh.Define(stage, "/World/Cloth")
    cloth.CreateFaceVertexCountsAttr([4])
    cloth.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    drops = UsdGeom.Points.Define(stage, "/World/Drops")
    drops.CreateWidthsAttr([0.02, 0.02])
    for code in (0, 12, 24):
        move.Set((code / 24.0, 0.0, 1.0), code)
        cloth.GetPointsAttr().Set([(0, 0, code), (1, 0, code), (1, 1, code), (0, 1, 0)], code)
        drops.GetPointsAttr().Set([(0, code, 0), (code, 0, 0)], code)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(24)
    stage.SetTimeCodesPerSecond(24)
    page = stage_page(stage, "animated")
    (take,) = page.takes
    assert take.times.tolist() == [0.0, 0.5, 1.0]
    assert [body.path for body in page.bodies] == ["/World/Rider"]
    assert np.allclose(take.positions[:, 0], [[0, 0, 1], [0.5, 0, 1], [1, 0, 1]])
    assert np.allclose(take.points["/World/Cloth"][:, 0, 2], [0, 12, 24])
    assert np.allclose(take.points["/World/Drops"][:, 1, 0], [0, 12, 24])
    kinds = {d["path"]: d["kind"] for d in unpacked(page_html(page)).header["drawables"]}
    assert kinds == {"/World/Rider": "sphere", "/World/Cloth": "surface", "/World/Drops": "cloud"}


def test_the_command(tmp_path, capsys):
    target = tmp_path / "arm.html"
    assert main(["view", str(SCENES / "arm.usda"), "-o", str(target)]) == 0
    assert str(target) in capsys.readouterr().out
    held = unpacked(target.read_text(encoding="utf-8"))
    scene = load_scene(SCENES / "arm.usda")
    assert [body["path"] for body in held.header["bodies"]] == [body.name for body in scene.bodies]
    stage = Usd.Stage.Open(str(SCENES / "arm.usda"))
    cache = UsdGeom.XformCache()
    for column, body in enumerate(scene.bodies):
        truth = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(body.name)).ExtractTranslation())
        assert np.abs(held.positions(0)[0, column] - truth * UsdGeom.GetStageMetersPerUnit(stage)).max() < 1e-6
    assert main(["view", str(SCENES / "arm.usda"), "-o", str(tmp_path / "arm.png")]) == 1
    assert "give an .html file" in capsys.readouterr().err


def test_the_bundle_is_the_one_that_was_built():
    folder = files("warpsim.view.page") / "three"
    record = json.loads((folder / "three.json").read_text())
    bundle = (folder / "three.min.js").read_bytes()
    assert hashlib.sha256(bundle).hexdigest() == record["sha256"]
    assert {name: package["version"] for name, package in record["packages"].items()} == build_three.PACKAGES
    assert "MIT" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert block(page_html(ball_page()), "three") == bundle
    revision = build_three.PACKAGES["three"].split(".")[1]
    assert f'"{revision}"' in bundle.decode("ascii")


def test_the_viewer_uses_all_of_the_bundle_and_nothing_else():
    assets = files("warpsim.view.page") / "assets"
    text = "".join(path.read_text(encoding="utf-8") for path in assets.iterdir() if path.name.endswith(".js"))
    assert set(re.findall(r"\bTHREE\.(\w+)", text)) == {*build_three.NAMES.split(), "OrbitControls"}


@pytest.mark.long
def test_the_bundle_can_be_built_again():
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine")
    ping = subprocess.run(["npm", "view", "three", "version"], capture_output=True, check=False)
    if ping.returncode != 0:
        pytest.skip("the npm registry cannot be reached")
    script = PROJECT / "tools" / "build_three.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_trajectory_opens_itself(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = Simulator(SCENES / "pendulum.usda").rollout(steps=3).view()
    assert opened == [path.as_uri()] and tmp_path in path.parents
    assert unpacked(path.read_text(encoding="utf-8")).header["takes"][0]["frames"] == 4
    assert main(["view", str(SCENES / "pendulum.usda"), "-o", str(tmp_path / "p.html"), "--open"]) == 0
    assert opened[1:] == [(tmp_path / "p.html").as_uri()]


def test_a_page_with_nothing_to_look_at_looks_at_the_origin():
    box = page_focus(Page("empty", [], [], [])).box
    assert np.allclose(box.mean(axis=0)[:2], 0.0) and np.allclose(np.ptp(box, axis=0), [1.0, 1.0, 0.5])
