"""Equalities that lock some axes, against MuJoCo's weld and connect and against joints of a tree in MuJoCo."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

from contact_support import converging
from finite_differences import relative_error
from loop_support import loose, pair, rotate, tree_motion, tree_of, unit
from mujoco_oracle import to_mujoco
from row_support import assert_gradients, evaluated, gradient_case, our_path, our_rows
from warpsim.scene import Equality, Options, Scene

MASKS = [mask for mask in itertools.product((False, True), repeat=6) if any(mask)]
QUICK = [
    mask
    for mask in MASKS
    if "".join("01"[held] for held in mask)
    in {"011111", "101111", "110111", "111011", "111101", "111110", "111001", "111010", "111100", "001011", "010000"}
]
SLIDER = (False, True, True, True, True, True)


def name(mask: tuple[bool, ...]) -> str:
    return "".join("xyzabc"[i] for i in range(6) if mask[i])


def check_against_tree(mask: tuple[bool, ...], seed: int) -> None:
    """As softness R = (1 − d)/d goes to zero, accelerations go to those of the tree's joints, as a power series."""
    scene, equality = pair(seed)
    equality.locked = mask
    q, qd, truth = tree_motion(tree_of(scene, equality), seed)
    softness, found = [], []
    for d in (0.9996, 0.9998, 0.9999):
        equality.solimp = np.array([d, d, 0.001, 0.5, 2.0])
        e = evaluated(loose(scene, equality), {"q": q, "qd": qd})
        rows = our_rows(e)
        assert np.abs(rows.jacobian @ qd).max() < 1e-12  # the tree's velocity is one the rows allow
        assert len(rows.weight) == sum(mask)
        softness.append((1 - d) / d)
        found.append(e.work.constraint.qdd.numpy()[0, :6])
    limit = np.polynomial.polynomial.polyfit(softness, np.array(found), 2)[0]
    assert relative_error(found[-1], truth) < 5e-3
    assert relative_error(limit, truth) < 1e-5, (found, truth)


@pytest.mark.parametrize("mask", QUICK, ids=name)
def test_hard_axes_are_joints(mask):
    check_against_tree(mask, 3)


@pytest.mark.long
@pytest.mark.parametrize("mask", MASKS, ids=name)
def test_every_set_of_hard_axes_is_a_joint(mask):
    for seed in range(10, 20):
        check_against_tree(mask, seed)


@pytest.mark.parametrize("kind", ["connect", "weld"])
def test_all_axes_are_mujocos_weld_and_translations_its_connect(kind):
    """Where nothing is violated, nor about to be: how violations are measured, and that the axes turn, differs."""
    scene, equality = pair(5)
    equality.locked = (True,) * 3 + (kind == "weld",) * 3
    equality.torque_scale = 0.7
    q, qd, _ = tree_motion(tree_of(scene, equality), 5)
    ours = evaluated(loose(scene, equality), {"q": q, "qd": qd}).work.constraint.qdd.numpy()[0]
    theirs = Equality("loop", kind, "a", "b", relative_pose=equality.relative_pose, torque_scale=0.7)
    pose = equality.relative_pose
    theirs.anchor = equality.anchor if kind == "weld" else pose[:3] + rotate(pose[3:], equality.anchor)
    model = converging(to_mujoco(loose(scene, theirs)))
    if kind == "connect":
        model.eq_data[0, 3:6] = equality.anchor
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    assert relative_error(ours, data.qacc) < 1e-9


@pytest.mark.parametrize(
    "mask", [SLIDER, (True, True, True, False, False, True), (False, True, False, True, False, True)]
)
def test_gradients(mask):
    scene, equality = pair(2)
    equality.locked = mask
    equality.solref, equality.solimp = np.array([0.05, 0.8]), np.array([0.6, 0.9, 0.3, 0.4, 2.0])
    closed = loose(scene, equality)
    closed.bodies[1].position, closed.bodies[1].rotation = np.array([0.3, -0.2, 0.5]), unit(np.random.default_rng(1))
    model = to_mujoco(Scene(bodies=closed.bodies, joints=closed.joints))
    rollout, inputs = gradient_case(
        model, 1, 4, ("equality",), ("body.mass", "body.inertia", "body.com"), scene=closed, spread=0.5
    )
    assert_gradients(rollout, inputs)


def test_a_slider_turns_and_slides_without_parting():
    """Two bodies on one rail tumble for 2 s without gravity: momenta stay, and the rail holds."""
    scene, equality = pair(4)
    equality.locked = SLIDER
    scene.options = Options(gravity=np.zeros(3), timestep=0.001, integrator="rk4", solver_tolerance=1e-13)
    q, qd, _ = tree_motion(tree_of(scene, equality), 4)
    equality.solref = np.array([0.005, 1.0])
    closed = loose(scene, equality)
    path = our_path(closed, q, qd, 2000)
    model = to_mujoco(tree_of(scene, equality))
    tree = mujoco.MjData(model)
    end = path[-1]
    tree.qpos[:7] = end[:7]
    mujoco.mj_forward(model, tree)
    axes = [rotate(tree.xquat[2], rotate(equality.axes, axis)) for axis in np.eye(3)]
    held = tree.xpos[2] + rotate(tree.xquat[2], equality.anchor)
    other = end[7:10] + rotate(end[10:14], equality.anchor)
    away = np.array([axis @ (other - held) for axis in axes])
    assert np.abs(away[1:]).max() < 1e-3
    assert abs(away[0]) > 0.5, "it slid"
    masses = [body.mass for body in closed.bodies]
    before, after = (sum(m * com_velocity(closed, s, i) for i, m in enumerate(masses)) for s in (np.r_[q, qd], end))
    assert np.abs(after - before).max() < 1e-9


def com_velocity(scene: Scene, state: np.ndarray, i: int) -> np.ndarray:
    """World velocity of the i-th free body's center of mass."""
    rotation, velocity = state[7 * i + 3 : 7 * i + 7], state[14 + 6 * i : 20 + 6 * i]
    return velocity[:3] + rotate(rotation, np.cross(velocity[3:], scene.bodies[i].com))
