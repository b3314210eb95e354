"""Scenes read through MuJoCo hold MuJoCo's numbers, come back to the same model, and hide nothing they cannot hold."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

from locations import ASSETS
from mjcf_comparison import assert_same_motion, assert_same_physics, assert_scene_is_model, rotation_matrix
from mujoco_oracle import to_mujoco
from random_models import INTEGRATORS, random_mjcf
from small_models import model_of
from warpsim.core.errors import InputError, SceneError, UnknownNameError
from warpsim.io.mjcf import read_mjcf, scene_from_mjmodel
from warpsim.scene.ledger import unsupported

ROBOTS = sorted(ASSETS.glob("*/mjcf/*.xml"))


def random_cases(seeds: range):
    """A model with every feature of the generator for each seed."""
    for seed in seeds:
        constrained = bool(seed % 2)
        yield (
            seed,
            random_mjcf(
                seed,
                bodies=1 + seed % 11,
                integrator=INTEGRATORS[seed % 3],
                medium=seed % 4 == 0,
                limits=constrained,
                friction_loss=constrained,
                equalities=3 * constrained,
                contacts=constrained,
            ),
        )


def check_random_models(seeds: range) -> None:
    for seed, xml in random_cases(seeds):
        model = mujoco.MjModel.from_xml_string(xml)
        scene = scene_from_mjmodel(model)
        assert_scene_is_model(scene, model)
        again = to_mujoco(scene)
        assert_same_physics(model, again)
        assert_same_motion(model, again, seed)


def test_random_models():
    check_random_models(range(30))


@pytest.mark.long
def test_many_random_models():
    check_random_models(range(30, 500))


@pytest.mark.skipif(not ROBOTS, reason="the third-party robot assets are not beside the project")
@pytest.mark.parametrize("path", ROBOTS, ids=[path.stem for path in ROBOTS])
def test_robots(path):
    model = mujoco.MjModel.from_xml_path(str(path))
    scene = read_mjcf(path, strict=True)
    assert_scene_is_model(scene, model)
    assert not unsupported(scene.ledger)
    bare = dataclasses.replace(scene, shapes=[], meshes={}, contact_overrides=[])
    assert_same_motion(model, to_mujoco(bare), seed=0)


def test_unnamed_items_get_unique_names():
    scene = read_mjcf(
        """<mujoco><worldbody>
          <body name="body_2"><joint/><geom size=".1"/>
            <body><joint type="slide" name="joint_0"/><joint axis="1 0 0"/><geom size=".1"/><site/></body></body>
        </worldbody><tendon><fixed><joint joint="joint_0" coef="1"/></fixed></tendon>
        <actuator><motor joint="joint_0"/></actuator></mujoco>"""
    )
    assert [body.name for body in scene.bodies] == ["body_2", "body_2_"]
    assert [joint.name for joint in scene.joints] == ["joint_0_", "joint_0", "joint_2"]
    assert [scene.shapes[0].name, scene.sites[0].name, scene.tendons[0].name] == ["geom_0", "site_0", "tendon_0"]
    assert scene.actuators[0].name == "actuator_0"


MOCAP = """<mujoco><worldbody>
  <body name="first"><freejoint name="root"/><geom size=".1"/></body>
  <body name="target" mocap="true" pos="1 2 3" quat="0 1 0 0"><geom size=".1"/></body>
  <body name="last"><joint name="hinge"/><geom size=".1"/></body>
</worldbody>
<actuator><general name="a" joint="hinge" dyntype="filter" dynprm="1"/><motor name="m" joint="hinge"/></actuator>
<keyframe>
  <key name="home" qpos="1 2 3 2 0 0 0 .5" qvel="1 2 3 4 5 6 7" act=".25" mpos="4 5 6" mquat="0 0 3 0" ctrl="1 0"/>
  <key name="away" qvel="0 0 0 0 0 0 1"/>
</keyframe></mujoco>"""


def test_mocap_bodies_are_kinematic():
    scene = read_mjcf(MOCAP)
    assert [body.kinematic for body in scene.bodies] == [False, True, False]
    assert [(joint.name, joint.kind) for joint in scene.joints] == [
        ("root", "free"),
        ("target_mocap", "free"),
        ("hinge", "hinge"),
    ]
    np.testing.assert_array_equal(scene.bodies[1].position, [1, 2, 3])
    np.testing.assert_array_equal(scene.bodies[1].rotation, [0, 1, 0, 0])


def test_keyframes():
    scene = read_mjcf(MOCAP, keyframe="home")
    root, target, hinge = scene.joints
    np.testing.assert_array_equal(root.initial_q, [1, 2, 3, 1, 0, 0, 0])
    np.testing.assert_array_equal(root.initial_qd, [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(target.initial_q, [4, 5, 6, 0, 0, 1, 0])
    assert (hinge.initial_q[0], hinge.initial_qd[0]) == (0.5, 7.0)
    assert [actuator.initial_activation for actuator in scene.actuators] == [0.25, 0.0]
    assert any(entry.attribute == "ctrl" and entry.status == "ignored" for entry in scene.ledger)
    plain = read_mjcf(MOCAP)
    assert all(joint.initial_q is None and joint.initial_qd is None for joint in plain.joints)
    with pytest.raises(UnknownNameError, match="did you mean 'home'"):
        read_mjcf(MOCAP, keyframe="hame")


def test_contact_pairs_and_exclusions():
    scene = read_mjcf(
        model_of(
            '<geom name="ghost" size=".1" contype="0" conaffinity="0"/>'
            '<geom name="skin" size=".1" contype="0" conaffinity="0"/>',
            contact='<pair geom1="ghost" geom2="f" condim="4" friction="1 2 .3 .4 .5" solref=".1 .2" '
            'solreffriction=".3 .4" solimp=".1 .2 .3 .4 5" margin=".01" gap=".02"/>'
            '<exclude body1="arm" body2="hand"/><exclude body1="world" body2="arm"/>',
        )
    )
    override = scene.contact_overrides[0]
    assert {override.a, override.b} == {"ghost", "f"}
    assert (override.condim, override.margin, override.gap) == (4, 0.01, 0.02)
    np.testing.assert_array_equal(override.friction, [1, 2, 0.3, 0.4, 0.5])
    np.testing.assert_array_equal(override.solref, [0.1, 0.2])
    np.testing.assert_array_equal(override.solref_friction, [0.3, 0.4])
    np.testing.assert_array_equal(override.solimp, [0.1, 0.2, 0.3, 0.4, 5])
    assert scene.excluded_bodies == {frozenset(("arm", "hand")), frozenset(("", "arm"))}
    collides = {shape.name: shape.collides for shape in scene.shapes}
    assert collides == {"g": True, "f": True, "ghost": True, "skin": False}


EQUALITIES = [
    '<connect site1="q" site2="p"/>',
    '<weld site1="q" site2="p" torquescale=".7"/>',
    '<weld body1="arm" body2="box" anchor=".1 .2 .3" torquescale=".5"/>',
    '<weld body1="arm" body2="box" anchor=".1 .2 .3" relpose=".3 .2 .1 .6 .8 0 0"/>',
    '<weld body1="box"/>',
    '<connect body1="box" body2="hand" anchor=".1 .2 .3"/>',
    '<joint joint1="h" joint2="x" polycoef=".1 .2 .3 .4 .5"/>',
    '<joint joint1="h" polycoef=".1 .2 .3 .4 .5"/>',
    '<connect body1="box" body2="arm" anchor="0 0 0" active="false"/>',
]


BOX = """<body name="box" pos="1 .2 0" quat=".8 0 .6 0"><freejoint/><geom size=".1" mass="1"/>
  <site name="p" pos=".1 .2 .3" quat=".6 0 0 .8"/></body>"""
NO_CONTACT = '<option><flag contact="disable"/></option>'


@pytest.mark.parametrize("equality", EQUALITIES)
def test_equalities_move_as_in_mujoco(equality):
    site = '<site name="q" euler="10 20 30"/>'
    model = mujoco.MjModel.from_xml_string(model_of(site, option=NO_CONTACT, world=BOX, equality=equality))
    assert_same_motion(model, to_mujoco(scene_from_mjmodel(model)), seed=3)
    if "active" not in equality:  # the constraint does act
        free = mujoco.MjModel.from_xml_string(model_of(site, option=NO_CONTACT, world=BOX))
        with pytest.raises(AssertionError):
            assert_same_motion(model, free, seed=3)


CUBE = "1 2 3  1 2 4  1 4 3  1 4 4  3 2 3  3 2 4  3 4 3  3 4 4"


def test_mesh_vertices_stay_where_the_file_puts_them():
    xml = f"""<mujoco><asset><mesh name="cube" vertex="{CUBE}" scale="1 .5 2"/></asset><worldbody>
      <body pos="1 0 0"><joint/>
        <geom name="solid" type="mesh" mesh="cube" pos=".1 .2 .3" quat=".6 0 .8 0"/>
        <geom name="seen" type="mesh" mesh="cube" contype="0" conaffinity="0" rgba="1 0 0 1" group="2"/>
        <geom name="fitted" type="box" mesh="cube" group="3"/>
      </body></worldbody></mujoco>"""
    scene = read_mjcf(xml)
    solid, seen, fitted = scene.shapes
    assert (solid.kind, seen.kind, fitted.kind) == ("hull", "mesh", "box")
    assert (solid.collides, seen.collides) == (True, False)
    assert (seen.color, seen.visible, fitted.visible) == ((1.0, 0.0, 0.0), True, False)
    assert fitted.mesh is None
    np.testing.assert_allclose(np.sort(fitted.size), [0.5, 1, 1], atol=1e-6)
    authored = np.array(CUBE.split(), float).reshape(-1, 3) * [1, 0.5, 2]
    expected = authored @ rotation_matrix(np.array([0.6, 0, 0.8, 0])).T + [0.1, 0.2, 0.3]
    vertices = scene.meshes["cube"].vertices @ rotation_matrix(solid.rotation).T + solid.position
    for vertex in expected:
        assert np.abs(vertices - vertex).max(axis=1).min() < 1e-6  # MuJoCo stores meshes in float32
    corners = scene.meshes["cube"].vertices[scene.meshes["cube"].faces]
    volume = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    assert volume == pytest.approx(4.0, rel=1e-6)  # positive: faces run counterclockwise seen from outside


def test_colors_come_from_the_geom_or_its_material():
    scene = read_mjcf(
        model_of(
            '<geom name="painted" size=".1" material="red"/><geom name="own" size=".1" material="red" rgba="0 1 0 1"/>'
            '<geom name="clear" size=".1" rgba="1 1 1 0"/>',
            asset='<material name="red" rgba="1 0 0 1"/>',
        )
    )
    shapes = {shape.name: shape for shape in scene.shapes}
    assert shapes["painted"].color == (1.0, 0.0, 0.0)
    assert shapes["own"].color == (0.0, 1.0, 0.0)
    assert not shapes["clear"].visible


URDF = """<robot name="pendulum">
  <link name="base"/>
  <link name="rod"><inertial><origin xyz="0 0 -.5"/><mass value="2"/>
    <inertia ixx=".1" iyy=".1" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="swing" type="revolute"><parent link="base"/><child link="rod"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="5" velocity="1"/><dynamics damping=".3" friction=".1"/></joint>
</robot>"""


def test_urdf(tmp_path):
    path = tmp_path / "pendulum.urdf"
    path.write_text(URDF)
    for scene in (read_mjcf(path), read_mjcf(str(path)), read_mjcf(URDF)):
        (rod,), (swing,) = scene.bodies, scene.joints
        assert (rod.name, rod.mass, swing.name, swing.kind) == ("rod", 2.0, "swing", "hinge")
        np.testing.assert_allclose(rod.com, [0, 0, -0.5])
        np.testing.assert_allclose(rod.inertia, np.diag([0.1, 0.1, 0.01]), atol=1e-15)
        np.testing.assert_allclose(swing.axis, [0, 1, 0])
        assert (swing.limit, swing.damping, swing.friction_loss) == ((-1.0, 2.0), 0.3, 0.1)
        assert swing.actuator_force_limit == (-5.0, 5.0)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(InputError, match="no file 'nowhere.xml'"):
        read_mjcf("nowhere.xml")
    with pytest.raises(SceneError, match="cannot compile the XML text"):
        read_mjcf("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco>")
    with pytest.raises(SceneError, match=r"broken\.xml"):
        read_mjcf(broken)


def test_the_scene_shares_no_memory_with_the_model():
    model = mujoco.MjModel.from_xml_string(random_mjcf(1, contacts=True, equalities=3))
    scene, untouched = scene_from_mjmodel(model), scene_from_mjmodel(model)
    for field in model._all_fields:
        value = getattr(model, field)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            value += 1.0
    model.opt.gravity += 1.0
    model.opt.wind += 1.0
    assert repr(scene) == repr(untouched)


def test_the_extra_is_named_when_mujoco_is_missing():
    code = "import sys; sys.modules['mujoco'] = None\nimport warpsim.io.mjcf"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert "WarpsimError" in done.stderr
    assert "pip install warpsim[mjcf]" in done.stderr
