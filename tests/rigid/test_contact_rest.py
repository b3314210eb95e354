"""Bodies that come to rest, stacks that stand, and random contact states of every pair that stay finite."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from collision_support import SIZES, random_quats
from contact_support import object_scene, solid
from rest_support import end_of
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Body, Joint, Mesh, Options, Scene, Shape
from warpsim.tape.checkpointed import CheckpointedTape

QUICK, FULL = 64, 4096
KINDS = ("plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "cone", "hull", "mesh")
MESHED = ("hull", "mesh")


def cube(half: float) -> Mesh:
    corners = half * np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    faces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6]]
    return Mesh("cube", corners, np.array([*faces, [0, 6, 4], [1, 5, 7], [1, 7, 3]]))


def resting_scene() -> Scene:
    """Everything lies a millimeter above the floor."""
    scene = object_scene(
        solid("box", (0.1, 0.2, 0.15), (0.0, 0.0, 0.151)),
        solid("cylinder", (0.1, 0.12), (0.6, 0.0, 0.121)),
        solid("cone", (0.1, 0.12), (1.2, 0.0, 0.121)),
        solid("ellipsoid", (0.2, 0.15, 0.1), (1.8, 0.0, 0.101)),
        solid("sphere", (0.1,), (2.4, 0.0, 0.101)),
        solid("capsule", (0.1, 0.2), (3.0, 0.0, 0.101), (np.pi / 2, 0.0, 0.0)),
        options=Options(),
    )
    scene.meshes["cube"] = cube(0.1)
    for x, kind in ((3.8, "hull"), (4.4, "mesh")):
        scene.bodies.append(Body(kind, position=np.array([x, 0.0, 0.101])))
        scene.joints.append(Joint(kind, "free", kind))
        scene.shapes.append(Shape(kind, kind, kind, size=np.ones(3), mesh="cube", sdf_resolution=24))
    return scene


def test_bodies_come_to_rest_on_the_floor():
    """After 5 s: slower than 0.1 mm/s, sunk less than 1 mm (they started 1 mm above)."""
    scene = resting_scene()
    heights = np.array([body.position[2] for body in scene.bodies]) - 0.001
    position, velocity = end_of(scene, 5.0)
    assert np.abs(velocity[:, :3]).max() < 1e-4, velocity
    assert np.abs(velocity[:, 3:]).max() < 1e-3, velocity
    sink = heights - position[:, 2]
    assert (sink < 1e-3).all() and (sink > -1e-4).all(), sink


def stack(count: int) -> Scene:
    boxes = [solid("box", (0.1, 0.1, 0.1), (0.0, 0.0, 0.1 + 0.2 * k)) for k in range(count)]
    return object_scene(*boxes, options=Options(timestep=0.004, max_contacts=8 * count))


@pytest.mark.parametrize("seconds", [1.0, pytest.param(10.0, marks=pytest.mark.long)])
def test_a_stack_of_ten_boxes_stands(seconds):
    position, velocity = end_of(stack(10), seconds)
    assert np.abs(position[:, :2]).max() < 1e-3, position
    assert np.abs(position[:, 2] - 0.1 - 0.2 * np.arange(10)).max() < 0.02, position
    if seconds > 5.0:
        assert np.abs(velocity).max() < 1e-4, velocity


def pair_scene(first: str, second: str, impacts: bool = False) -> Scene:
    """A fixed shape and a free one, or a plane and a free one."""
    options = Options(max_contacts=64 if "mesh" in (first, second) else 16, solver_tolerance=1e-12, impacts=impacts)
    scene = Scene(options=options, meshes={"cube": cube(0.3)})
    for name, kind in (("a", first), ("b", second)):
        if kind != "plane":
            scene.bodies.append(Body(name, mass=1.0, com=np.zeros(3), inertia=0.05 * np.eye(3)))
            scene.joints.append(Joint(name, "free", name))
        mesh = "cube" if kind in MESHED else None
        size = np.ones(3) if mesh else np.array(SIZES[kind])
        body = None if kind == "plane" else name
        scene.shapes.append(Shape(name, kind, body, size=size, mesh=mesh, sdf_resolution=24, condim=6))
    return scene


def random_contacts(bodies: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Poses that mostly overlap and velocities; every eighth at rest, every eighth aligned, every eighth coincident."""
    rng = np.random.default_rng(seed)
    q, qd = np.zeros((count, bodies, 7)), rng.normal(size=(count, bodies, 6))
    for k in range(bodies):
        q[:, k, :3], q[:, k, 3:] = 0.25 * rng.normal(size=(count, 3)), random_quats(rng, count)
    qd[0::8] = 0.0
    q[1::8, :, 3:] = (1.0, 0.0, 0.0, 0.0)
    q[2::8, :, :3] = 0.0
    q[3::8] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    qd[3::8] = 0.0
    return q.reshape(count, -1), qd.reshape(count, -1)


def check_pair(first: str, second: str, count: int, impacts: bool = False) -> None:
    """One step and its gradient by state and all parameters of contact: numbers, everywhere."""
    model = compile_model(pair_scene(first, second, impacts), worlds=count)
    parameters = ["shape.size", "shape.position", "shape.friction", "shape.solref", "shape.solimp", "body.mass"]
    if first in MESHED or second in MESHED:
        parameters.remove("shape.size")
    model.require_gradients(parameters)
    derivation = Derivation(model)
    derivation.run(record=True)
    tape = CheckpointedTape(RigidProgram(model, controls=()), steps=1, capture=False, check=False, groups=1)
    q, qd = random_contacts(model.nv // 6, count, 7)
    run = tape.forward({"q": q, "qd": qd, "warm_start": np.zeros_like(qd)}, keep_states=True)
    states = {name: run.states[name].numpy() for name in ("q", "qd")}
    found = tape.backward(run, state_seeds={name: {-1: np.ones_like(value[-1])} for name, value in states.items()})
    derivation.backward()
    for name, value in states.items():
        assert np.isfinite(value).all(), (name, np.argwhere(~np.isfinite(value))[:4])
    for name in ("q", "qd"):
        value = found.initial_state[name].numpy()
        assert np.isfinite(value).all(), (name, np.argwhere(~np.isfinite(value))[:4])
    for name in parameters:
        value = model.authored[name].grad.numpy()
        assert np.isfinite(value).all(), (name, np.argwhere(~np.isfinite(value))[:4])


PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))[1:]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_random_contacts_are_finite(first, second):
    check_pair(first, second, QUICK)


@pytest.mark.parametrize(("first", "second"), [("plane", "box"), ("sphere", "sphere"), ("box", "box")])
def test_random_impacts_are_finite(first, second):
    check_pair(first, second, QUICK, impacts=True)


@pytest.mark.long
@pytest.mark.parametrize("impacts", [False, True])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_many_random_contacts_are_finite(first, second, impacts):
    check_pair(first, second, FULL, impacts)
