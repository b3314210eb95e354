"""Inverse weights against MuJoCo's, and their derivatives against central differences."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from derive_support import DerivedLoss
from random_models import random_mjcf
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.compile.weight_rows import sliding_bodies
from warpsim.scene import Body, Joint, Scene, Shape

WEIGHTS = ["weight.body", "weight.dof", "weight.tendon"]
ROBOTS = (
    "brax_ant",
    "brax_cartpole",
    "brax_hopper",
    "brax_walker2d",
    "franka_emika_panda",
    "mujoco_humanoid",
    "skydio_x2",
    "so_arm100",
    "unitree_a1",
)
INERTIA = '<inertial pos="0 0 0" mass="2" diaginertia=".3 .2 .1"/>'
OFF_CENTER = '<inertial pos=".1 0 .05" mass="2" diaginertia=".3 .2 .1"/>'


def derived(scene: Scene):
    model = compile_model(scene)
    for array in (model.weight.body, model.weight.dof, model.weight.tendon):
        array.fill_(np.nan)
    Derivation(model).run()
    return model


def assert_same(mj: mujoco.MjModel) -> None:
    scene = scene_from_mjmodel(mj)
    scene.options.contacts = False
    model = derived(scene)
    order = [0] + [model.layout.body(b.name) for b in scene.bodies]
    np.testing.assert_allclose(model.weight.body.numpy()[0][order], mj.body_invweight0, rtol=1e-9, atol=1e-12)
    moved = model.topology.dof_prescribed.numpy() == 0  # mocap bodies have no dofs in MuJoCo
    np.testing.assert_allclose(model.weight.dof.numpy()[0][moved], mj.dof_invweight0, rtol=1e-9)
    assert (model.weight.dof.numpy()[0][~moved] == 0).all()
    np.testing.assert_allclose(model.weight.tendon.numpy()[0], mj.tendon_invweight0, rtol=1e-9)


def world(text: str, rest: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{text}</worldbody>{rest}</mujoco>")


@pytest.mark.parametrize("seed", range(8))
def test_random_models(seed):
    assert_same(mujoco.MjModel.from_xml_string(random_mjcf(seed, limits=True, friction_loss=True)))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 40))
def test_more_random_models(seed):
    assert_same(mujoco.MjModel.from_xml_string(random_mjcf(seed, bodies=9, tendons=4)))


@pytest.mark.parametrize("robot", ROBOTS)
def test_robots(assets_dir: Path, robot):
    files = sorted((assets_dir / robot / "mjcf").glob("*.xml"))
    assert files
    for file in files:
        assert_same(mujoco.MjModel.from_xml_path(str(file)))


@pytest.mark.parametrize(
    "text",
    [
        f'<body><joint type="slide" axis="1 0 0"/>{INERTIA}</body>',
        f'<body><joint type="slide" axis="1 0 0" armature="1"/>{INERTIA}</body>',
        f'<body><joint type="slide" axis="1 1 0"/>{INERTIA}</body>',
        f'<body><joint type="slide" axis="1 0 0" pos="0 0 1"/>{INERTIA}</body>',
        f'<body><joint type="slide" axis="1 0 0"/>{OFF_CENTER}</body>',
        f'<body quat="1 1 0 0"><joint type="slide"/><joint type="slide" axis="0 1 0"/>{INERTIA}</body>',
        f'<body><joint type="slide"/>{INERTIA}<body>{INERTIA}</body></body>',
        f'<body>{INERTIA}<body><joint type="slide"/>{INERTIA}</body></body>',
        f'<body>{INERTIA}<body>{INERTIA}<body><joint type="slide"/>{INERTIA}</body></body></body>',
        f'<body><joint type="hinge" axis="1 0 0"/>{INERTIA}</body>',
        f'<body><joint type="ball" armature=".5"/>{OFF_CENTER}</body>',
        f'<body><joint type="free" armature=".5"/>{OFF_CENTER}</body>',
        f'<body mocap="true">{INERTIA}<body pos="0 1 0"><joint/>{OFF_CENTER}</body></body>',
        f"<body>{INERTIA}</body>",
        f'<body><joint ref=".7"/>{INERTIA}<body pos="1 0 0"><joint axis="1 0 0" ref="-1"/>{OFF_CENTER}</body></body>',
    ],
)
def test_special_cases(text):
    assert_same(world(text))


def test_tendon_over_several_trees():
    bodies = "".join(f'<body pos="{k} 0 0"><joint name="j{k}" axis="0 1 0"/>{OFF_CENTER}</body>' for k in range(3))
    terms = '<joint joint="j2" coef="2"/><joint joint="j0" coef="-1"/>'
    assert_same(world(bodies, f"<tendon><fixed>{terms}</fixed></tendon>"))


def interleaved_scene() -> Scene:
    """Two trees whose bodies come in turn, one of them on a kinematic base."""
    scene = Scene()
    shape = dict(size=np.array([0.1, 0.2, 0.3]), position=np.array([0.05, 0.1, 0.0]))
    for name, parent in (("a0", None), ("b0", None), ("a1", "a0"), ("b1", "b0"), ("a2", "a1")):
        scene.bodies.append(Body(name, parent, position=np.array([0.3, 0.2, 0.1]), kinematic=name == "b0"))
        kind = "free" if parent is None else "hinge"
        scene.joints.append(Joint(f"j_{name}", kind, name, anchor=np.array([0.0, 0.1, 0.0]), armature=0.01))
        scene.shapes.append(Shape(f"s_{name}", "box", name, collides=False, **shape))
    return scene


def test_trees_whose_bodies_come_in_turn():
    scene = interleaved_scene()
    model = derived(scene)
    by_tree = derived(
        Scene(bodies=[scene.bodies[i] for i in (0, 2, 4, 1, 3)], joints=scene.joints, shapes=scene.shapes)
    )
    places = [by_tree.layout.body(name or None) for name in model.layout.body_names]
    np.testing.assert_allclose(model.weight.body.numpy()[0], by_tree.weight.body.numpy()[0][places], rtol=1e-12)
    kinematic, held = model.layout.body("b0"), model.layout.body("b1")
    assert (model.weight.body.numpy()[0, kinematic] == 0).all() and (model.weight.body.numpy()[0, held] > 0).all()


def test_without_constraints_nothing_is_derived():
    scene = interleaved_scene()
    scene.options.constraints = False
    model = compile_model(scene)
    Derivation(model).run()
    assert (model.weight.dof.numpy() == 0).all()


def test_sliding_bodies_from_shapes():
    scene = Scene(
        bodies=[Body("b")], joints=[Joint("x", "slide", "b")], shapes=[Shape("s", "sphere", "b", size=np.ones(3))]
    )
    model = derived(scene)
    assert sliding_bodies(model).tolist() == [False, True]
    mass = 1000.0 * 4.0 / 3.0 * np.pi
    np.testing.assert_allclose(model.weight.body.numpy()[0, 1], [1.0 / mass, 0.0], rtol=1e-14)


MECHANICS = {
    "body.mass": 0.5,
    "body.com": 0.1,
    "body.inertia": 0.01,
    "body.position": 0.3,
    "body.rotation": 0.3,
    "joint.anchor": 0.2,
    "joint.axis": 0.3,
    "joint.armature": 0.02,
    "tendon.coefficient": 0.5,
}


@pytest.mark.parametrize("seed", [1, 4])
def test_gradients(seed):
    mj = mujoco.MjModel.from_xml_string(random_mjcf(seed, bodies=4))
    names = list(MECHANICS)
    bench = DerivedLoss(scene_from_mjmodel(mj), names, WEIGHTS)
    gradients = bench.gradients(names)
    for name in names:
        assert bench.error(name, gradients[name], MECHANICS[name]) < 1e-6, name


def test_gradients_of_shapes_and_sliding_mass():
    scene = interleaved_scene()
    scene.bodies.append(Body("slider"))
    scene.joints.append(Joint("x", "slide", "slider"))
    scene.shapes.append(Shape("ball", "sphere", "slider", size=np.array([0.1, 0, 0]), collides=False))
    scales = {"shape.size": 0.05, "shape.density": 300.0, "shape.position": 0.1, "shape.rotation": 0.3}
    bench = DerivedLoss(scene, list(scales), WEIGHTS, worlds=2)
    gradients = bench.gradients(list(scales))
    for name, scale in scales.items():
        assert bench.error(name, gradients[name], scale) < 1e-6, name


def test_backward_twice_is_the_same():
    mj = mujoco.MjModel.from_xml_string(random_mjcf(3, bodies=4))
    names = ["body.mass", "joint.anchor"]
    bench = DerivedLoss(scene_from_mjmodel(mj), names, WEIGHTS)
    first, second = bench.gradients(names), bench.backward(names)
    for name in names:
        assert np.array_equal(first[name], second[name])
