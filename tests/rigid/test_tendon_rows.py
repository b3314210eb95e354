"""Tendon limits and dry friction against MuJoCo and closed forms: rows, forces, accelerations, rollouts, gradients."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_support import converging
from random_models import random_state
from rigid_support import INTEGRATORS, ROBOTS
from row_support import (
    assert_gradients,
    assert_small,
    compare_rows,
    constrained_model,
    gradient_case,
    near_reference,
    our_path,
    path_ratio,
)
from warpsim.rigid.compile.compile import compile_model
from warpsim.scene import Body, Joint, Options, Scene, Tendon

TENDONS = dict(tendons=5, limits=True, friction_loss=True)
HUMANOID = [path for path in ROBOTS if path.parts[-3] == "mujoco_humanoid"]
LIMITED = int(mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
ROUGH = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON)


def kinds_of_rows(model: mujoco.MjModel, state) -> set[int]:
    data = mujoco.MjData(model)
    state.apply(data)
    mujoco.mj_forward(model, data)
    return set(data.efc_type.tolist())


def check_random(seed: int) -> set[int]:
    model, kinds = constrained_model(seed, **TENDONS), set()
    for speed in (0.0, 1e-3, 2.0):  # dry friction holds, creeps, slips
        state = random_state(model, seed, speed=speed)
        assert_small(compare_rows(model, state), f"seed {seed}, speed {speed}")
        kinds |= kinds_of_rows(model, state)
    return kinds


def test_random_rows_match_mujoco():
    kinds = set().union(*(check_random(seed) for seed in range(6)))
    assert {LIMITED, ROUGH} <= kinds


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6, 160))
def test_many_random_rows_match_mujoco(seed):
    check_random(seed)


@pytest.mark.parametrize("path", HUMANOID, ids=lambda path: path.stem)
def test_limited_tendons_of_a_robot(path):
    model, kinds = converging(mujoco.MjModel.from_xml_path(str(path))), set()
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    assert model.tendon_limited.sum() == 2
    for seed in range(4):
        state = random_state(model, seed)
        assert_small(compare_rows(model, state), f"seed {seed}")
        kinds |= kinds_of_rows(model, state)
    assert LIMITED in kinds


def pulley(**tendon) -> Scene:
    """Two vertical slides of 1 kg and 3 kg under one tendon, length = q₀ + 2 q₁."""
    scene = Scene(options=Options(timestep=0.001))
    for k, mass in enumerate((1.0, 3.0)):
        name = f"m{k}"
        scene.bodies.append(Body(name, position=np.array([k, 0.0, 0.0]), mass=mass, com=np.zeros(3), inertia=np.eye(3)))
        scene.joints.append(Joint(name, "slide", name, axis=np.array([0.0, 0.0, 1.0])))
    scene.tendons.append(Tendon("rope", ["m0", "m1"], np.array([1.0, 2.0]), **tendon))
    return scene


def test_dry_friction_of_a_slipping_tendon_is_its_loss():
    """Falling, the rope shortens: friction pulls with the loss times each coefficient."""
    loss, time = 1.5, 0.4
    end = our_path(pulley(friction_loss=loss), np.zeros(2), np.array([-1.0, -1.0]), 400)[-1]
    expected = -1.0 + time * (-9.81 + loss * np.array([1.0, 2.0]) / [1.0, 3.0])
    np.testing.assert_allclose(end[2:], expected, rtol=1e-12)


def test_a_taut_tendon_shares_its_force_by_leverage():
    """A rope stopped at its limit has a̅ = 0: with force f, a = −g + c f/m and c·a = 0."""
    scene = pulley(limit=(-0.1, np.inf))
    path = our_path(scene, np.zeros(2), np.zeros(2), 3000)
    lengths = path[:, :2] @ [1.0, 2.0]
    force = 9.81 * 3.0 / (1.0 + 4.0 / 3.0)
    acceleration = (path[-1, 2:] - path[-101, 2:]) / 0.1
    np.testing.assert_allclose(acceleration, -9.81 + force * np.array([1.0, 2.0]) / [1.0, 3.0], rtol=1e-6)
    assert lengths.min() > -0.12
    assert abs(lengths[-1] + 0.1) < 1e-3


def test_a_tendon_alone_makes_a_model_constrained():
    assert not compile_model(pulley()).has_constraints
    assert compile_model(pulley(limit=(-1.0, 1.0))).has_constraints
    assert compile_model(pulley(friction_loss=0.1)).has_constraints


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_rollouts_part_no_faster_than_mujoco_from_itself(integrator):
    model = constrained_model(2, integrator, **TENDONS, actuators=0)
    state = near_reference(model, 2)
    assert path_ratio(model, state.qpos, state.qvel, 200) < 100.0


@pytest.mark.parametrize(("integrator", "steps"), [("euler", 20), ("implicitfast", 1), ("rk4", 1)])
def test_gradients(integrator, steps):
    model = constrained_model(3, integrator, **TENDONS)
    rollout, inputs = gradient_case(model, 3, steps, ("tendon_limit", "limit"), ("tendon.coefficient",), spread=0.4)
    assert_gradients(rollout, inputs)
