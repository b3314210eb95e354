"""Faces and edges that nearly lie on one another: MuJoCo's contacts, point for point, and their gradients."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest

from collision_support import ContactBench, directional_errors
from warpsim.collision.pairs import collision_pairs
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.scene import Scene

FULL = pytest.param(3000, marks=pytest.mark.long)
_RNG = np.random.default_rng(20)
_POINTS = {
    "wedge": np.array([[x, y, z * (1 + 0.5 * x)] for x in (-1, 1) for y in (-0.7, 0.7) for z in (-0.6, 0.6)]) * 0.2,
    "prism": np.array([[np.cos(a), np.sin(a), z] for z in (-0.7, 0.7) for a in np.arange(6) * np.pi / 3]) * 0.2,
    "blob": _RNG.normal(size=(20, 3)) * 0.12,
}
_GEOMS = {
    "box": 'type="box" size=".25 .2 .1"',
    "cylinder": 'type="cylinder" size=".16 .12"',
    "capsule": 'type="capsule" size=".05 .15"',
} | {name: f'type="mesh" mesh="{name}"' for name in _POINTS}
PAIRS = [
    ("box", "wedge"),
    ("box", "blob"),
    ("wedge", "prism"),
    ("prism", "prism"),
    ("blob", "wedge"),
    ("capsule", "prism"),
    ("cylinder", "box"),
    ("cylinder", "wedge"),
]


@dataclass
class Case:
    """Two shapes at many poses, and MuJoCo's contacts there."""

    scene: Scene
    position: np.ndarray
    rotation: np.ndarray
    contacts: list[list[tuple[float, np.ndarray, np.ndarray]]]


def pair_model(first: str, second: str) -> mujoco.MjModel:
    meshes = "".join(
        f'<mesh name="{name}" vertex="{" ".join(repr(float(x)) for x in _POINTS[name].ravel())}"/>'
        for name in {first, second} & set(_POINTS)
    )
    bodies = "".join(f"<body><freejoint/><geom {_GEOMS[name]} mass='1'/></body>" for name in (first, second))
    option = '<option ccd_tolerance="1e-12" ccd_iterations="500"/>'
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{option}<asset>{meshes}</asset><worldbody>{bodies}</worldbody></mujoco>"
    )


def face_turn(axis: int, rng: np.random.Generator) -> np.ndarray:
    """A quaternion that turns one of the six sides of a shape up, then a little of everything."""
    turns = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [1, -1, 0, 0], [1, 0, 1, 0], [1, 0, -1, 0]], float)
    quat, tilted, yaw = turns[axis] / np.linalg.norm(turns[axis]), np.zeros(4), np.zeros(4)
    angle = rng.uniform(-np.pi, np.pi) / 2
    mujoco.mju_mulQuat(yaw, np.array([np.cos(angle), 0, 0, np.sin(angle)]), quat)
    tilt = np.append(1.0, 0.5 * rng.uniform(-0.1, 0.1, size=3))
    mujoco.mju_mulQuat(tilted, tilt / np.linalg.norm(tilt), yaw)
    return tilted


def lying_case(first: str, second: str, count: int, rng: np.random.Generator) -> Case:
    """The second shape with one of its sides on the first, a little tilted and sunk in."""
    model = pair_model(first, second)
    scene, data = scene_from_mjmodel(model), mujoco.MjData(model)
    pair = collision_pairs(scene)[0]
    scene.shapes = [scene.shapes[i] for i in pair]
    position, rotation, contacts = [], [], []
    while len(contacts) < count:
        data.qpos[:3], data.qpos[3:7] = 0.0, face_turn(int(rng.integers(6)), rng)
        data.qpos[10:] = face_turn(int(rng.integers(6)), rng)
        data.qpos[7:9] = 0.1 * rng.normal(size=2)
        data.qpos[9] = 0.6
        mujoco.mj_kinematics(model, data)
        gap = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None)
        data.qpos[9] -= gap + rng.uniform(0.001, 0.01)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        if not data.ncon:
            continue
        quats = np.zeros((2, 4))
        for k in range(2):
            mujoco.mju_mat2Quat(quats[k], data.geom_xmat[pair[k]])
        position.append(data.geom_xpos[pair].copy())
        rotation.append(quats)
        c = data.contact
        contacts.append([(c.dist[k], c.pos[k].copy(), c.frame[k][:3].copy()) for k in range(data.ncon)])
    return Case(scene, np.array(position), np.array(rotation), contacts)


def largest_difference(found, world: int, theirs: list) -> float:
    """Of points, distances and normals of two lists of contacts, in any order; infinite for different counts."""
    if found.count[world] != len(theirs):
        return np.inf
    worst, left = 0.0, list(range(len(theirs)))
    for distance, point, normal in theirs:
        k = left.pop(int(np.argmin([np.abs(found.point[world, i] - point).max() for i in left])))
        parts = (found.distance[world, k] - distance, found.point[world, k] - point, found.frame[world, k, 0] - normal)
        worst = max(worst, *(float(np.abs(part).max()) for part in parts))
    return worst


@pytest.mark.parametrize("count", [150, FULL])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_contacts_of_lying_shapes_are_mujocos(first, second, count, rng):
    case = lying_case(first, second, count, rng)
    found = ContactBench(case.scene, case.position, case.rotation).run()
    errors = np.array([largest_difference(found, w, theirs) for w, theirs in enumerate(case.contacts)])
    assert np.mean([len(theirs) > 1 for theirs in case.contacts]) > 0.2
    # MuJoCo knows the normal of a rim to about 1e-5, and of a cap's sixteen points several fours span as much
    near, share = (1e-5, 0.9) if "cylinder" in (first, second) else (1e-6, 0.95)
    assert np.mean(errors < near) > share, np.sort(errors)[-10:]


@pytest.mark.parametrize("count", [60, FULL])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_contacts_of_lying_shapes_have_true_gradients(first, second, count, rng):
    case = lying_case(first, second, count, rng)
    error, touching = directional_errors(case.scene, case.position, case.rotation, rng)
    assert touching.all()
    assert len(error) > 0.9 * count  # the rest straddle a change of a discrete choice
    assert error.max() < 1e-6
