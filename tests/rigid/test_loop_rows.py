"""Limits and drives of joints that close loops, against joints of a tree in MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_support import converging
from finite_differences import relative_error
from loop_support import free_motion, loose, pair, tree_of, tree_state
from mujoco_oracle import to_mujoco
from row_support import assert_gradients, evaluated, gradient_case, our_rows
from warpsim.scene import Drive, Equality, Joint, Options, Scene

HARDNESS = (0.9996, 0.9998, 0.9999)
FREE = {
    "slide x": (0,),
    "slide z": (2,),
    "turn x": (3,),
    "turn y": (4,),
    "turn z": (5,),
    "cylinder": (1, 4),
    "universal xy": (3, 4),
    "universal xz": (3, 5),
    "universal yz": (4, 5),
    "planar": (0, 1, 5),
    "three turns": (3, 4, 5),
    "slide and three turns": (1, 3, 4, 5),
}


def masked(free: tuple[int, ...]) -> tuple[bool, ...]:
    return tuple(i not in free for i in range(6))


def limit(softness: list[float], found: list[np.ndarray]) -> np.ndarray:
    """Value at zero softness of a quadratic through three."""
    return np.polynomial.polynomial.polyfit(softness, np.array(found), 2)[0]


def harden(equality: Equality, d: float) -> None:
    equality.solimp = equality.limit_solimp = np.array([d, d, 0.001, 0.5, 2.0])


def check_limits(free: tuple[int, ...], seed: int) -> bool:
    """Each coordinate beyond a limit, on one side and the other in turn, as both engines' rows become hard.

    Returns:
        False, without a check, for a state whose middle turn of three is not well within a quarter: no limit fits it.
    """
    scene, equality = pair(seed)
    equality.locked = masked(free)
    equality.limit_solref = np.array([0.3, 0.7])
    data = tree_state(to_mujoco(tree_of(scene, equality)), seed, spread=0.5)
    if {3, 4, 5} <= set(free) and abs(data.qpos[7 + free.index(4)]) > np.pi / 2 - 0.3:
        return False
    for n, axis in enumerate(free):
        place, beyond = data.qpos[7 + n], 0.2 if (n + seed) % 2 else -0.2
        equality.limits[axis] = (place - beyond, np.inf) if beyond < 0 else (-np.inf, place - beyond)
    softness, ours, theirs = [], [], []
    for d in HARDNESS:
        harden(equality, d)
        model = converging(to_mujoco(tree_of(scene, equality)))
        data = tree_state(model, seed, spread=0.5)
        q, qd = free_motion(model, data)
        e = evaluated(loose(scene, equality), {"q": q, "qd": qd})
        rows = our_rows(e)
        assert len(rows.weight) == 6
        np.testing.assert_allclose(
            rows.jacobian[6 - len(free) :] @ qd, data.efc_J.reshape(-1, model.nv) @ data.qvel, atol=1e-12
        )
        softness.append((1 - d) / d)
        ours.append(e.work.constraint.qdd.numpy()[0, :6])
        theirs.append(data.qacc[:6].copy())
    free_fall = np.array([0, 0, -9.81, 0, 0, 0])
    assert relative_error(limit(softness, ours), limit(softness, theirs)) < 1e-5
    assert np.abs(theirs[-1] - free_fall).max() > 0.1
    return True


@pytest.mark.parametrize("free", FREE.values(), ids=FREE)
def test_hard_limits_are_those_of_joints(free):
    assert check_limits(free, 3)


@pytest.mark.long
@pytest.mark.parametrize("free", FREE.values(), ids=FREE)
def test_hard_limits_are_those_of_joints_at_many_states(free):
    assert sum(check_limits(free, seed) for seed in range(10, 30)) >= 15


def test_a_hard_cone_is_that_of_a_ball_joint():
    scene, equality = pair(6)
    equality.locked = masked((3, 4, 5))
    equality.limit_solref = np.array([0.3, 0.7])
    axis = np.array([0.0, 0.0, 1.0])
    softness, ours, theirs = [], [], []
    for d in HARDNESS:
        harden(equality, d)
        ball = Joint("ball", "ball", "b", anchor=equality.anchor, axis=axis)
        tree = Scene(bodies=scene.bodies, joints=[*scene.joints, ball], options=scene.options)
        angle = 2 * np.arccos(abs(tree_state(to_mujoco(tree), 6).qpos[7]))
        ball.limit, equality.turn_limit = (0.0, angle - 0.2), angle - 0.2
        ball.limit_solref, ball.limit_solimp = equality.limit_solref, equality.limit_solimp
        model = converging(to_mujoco(tree))
        data = tree_state(model, 6)
        q, qd = free_motion(model, data)
        e = evaluated(loose(scene, equality), {"q": q, "qd": qd})
        assert len(our_rows(e).weight) == 4
        softness.append((1 - d) / d)
        ours.append(e.work.constraint.qdd.numpy()[0, :6])
        theirs.append(data.qacc[:6].copy())
    assert relative_error(limit(softness, ours), limit(softness, theirs)) < 1e-5


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
@pytest.mark.parametrize("free", [(2,), (4,), (1, 4), (3, 5), (3, 4, 5)])
def test_drives_are_those_of_joints(free, integrator):
    """MuJoCo's twin: the force of the step's start, and armatures for what multiplies the acceleration at its end.

    The first drive is cut by its largest force, so it has no such part.
    """
    h, k, c = 0.01, 300.0, 7.0
    scene, equality = pair(8)
    equality.locked = masked(free)
    scene.options = Options(integrator=integrator, timestep=h, solver_tolerance=1e-14)
    drives = [Drive(f"d{i}", "loop", axis=i, stiffness=k, damping=c) for i in free]
    drives[0].max_force = 1.5
    step = 0.0 if integrator == "rk4" else h
    softness, ours = [], []
    for d in HARDNESS:
        harden(equality, d)
        model = converging(to_mujoco(tree_of(scene, equality)))
        data = tree_state(model, 8, spread=0.4)
        q, qd = free_motion(model, data)
        for n in range(len(free)):
            raw = k * (0.3 - data.qpos[7 + n] - step * data.qvel[6 + n]) + c * (-0.2 - data.qvel[6 + n])
            data.qfrc_applied[6 + n] = np.clip(raw, -drives[n].max_force, drives[n].max_force)
            model.dof_armature[6 + n] = 0.0 if n == 0 else step * (c + step * k)
        assert abs(data.qfrc_applied[6]) == 1.5
        closed = loose(scene, equality)
        closed.drives = drives
        targets = {"drive_target": np.full(len(free), 0.3), "drive_velocity": np.full(len(free), -0.2)}
        e = evaluated(closed, {"q": q, "qd": qd, **targets})
        softness.append((1 - d) / d)
        ours.append(e.work.constraint.qdd.numpy()[0, :6])
        assert e.work.saturated.numpy()[0].tolist() == [int(np.sign(data.qfrc_applied[6]))] + [0] * (len(free) - 1)
    mujoco.mj_forward(model, data)
    assert relative_error(limit(softness, ours), data.qacc[:6]) < 1e-5


@pytest.mark.parametrize(
    "free",
    [
        pytest.param((0,), id="slide", marks=pytest.mark.long),
        pytest.param((4,), id="hinge"),
        pytest.param((3, 5), id="universal", marks=pytest.mark.long),
        pytest.param((3, 4, 5), id="three turns"),
        pytest.param((3, 4, 5, 6), id="cone"),
    ],
)
def test_gradients(free):
    """Limits that act and drives, of which one is cut, in a rollout that violates what it holds."""
    scene, equality = pair(2)
    equality.locked = masked(free)
    equality.solref, equality.solimp = np.array([0.05, 0.8]), np.array([0.6, 0.9, 0.3, 0.4, 2.0])
    equality.limit_solref, equality.limit_solimp = np.array([0.08, 0.7]), np.array([0.5, 0.9, 0.8, 0.4, 2.0])
    closed = loose(scene, equality)
    turn = np.array([0.9, 0.2, -0.3, 0.25])
    closed.bodies[1].position, closed.bodies[1].rotation = np.array([0.3, -0.2, 0.5]), turn / np.linalg.norm(turn)
    if 6 in free:
        equality.turn_limit = 0.1
    else:
        equality.limits[free[0]] = (1.5, np.inf)
        equality.limits[free[-1]] = (-np.inf, -1.0) if len(free) > 1 else equality.limits[free[-1]]
        closed.drives = [Drive(f"d{i}", "loop", axis=i, stiffness=5.0, damping=1.0) for i in free]
        closed.drives[-1].max_force = 0.5
    model = to_mujoco(Scene(bodies=closed.bodies, joints=closed.joints))
    parameters = ("body.mass", "body.inertia", "body.com")
    rollout, inputs = gradient_case(model, 1, 4, ("equality", "loop", "drive"), parameters, scene=closed, spread=0.3)
    check = assert_gradients(rollout, inputs, most=0.2)
    assert {"loop.range", "loop.solref", "loop.solimp"} <= set(check.errors)
