"""The rigid core against MuJoCo in float64, constraints disabled: all quantities of one evaluation, and trajectories.

All intermediates hold NaN before, so nothing left unwritten can pass.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp

from finite_differences import relative_error
from random_models import random_state
from rigid_support import (
    INTEGRATORS,
    ROBOTS,
    Evaluation,
    dense_mass_matrix,
    evaluation,
    initial_state,
    inputs_of,
    random_model,
    robot,
    scene_of,
    unconstrained,
)
from warpsim.rigid import query
from warpsim.rigid.dynamics.actuation import actuation
from warpsim.rigid.dynamics.inverse_dynamics import residual_at_rest
from warpsim.rigid.dynamics.kinematics import kinematics
from warpsim.rigid.dynamics.passive import passive
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory

TOLERANCE = 1e-9
QUICK = 15
FULL = 200
NUDGE = 1e-12


def smooth_force(e: Evaluation, bias: np.ndarray, *, actuated: bool) -> np.ndarray:
    """Generalized force of the passive (and actuation) stage alone: the bias less the residual at rest."""
    e.poison()
    kinematics(e.model, e.state, e.work)
    passive(e.model, e.state, e.control, e.work)
    if actuated:
        actuation(e.model, e.state, e.control, e.work)
    residual_at_rest(e.model, e.state, e.work, e.scratch)
    return bias - e.scratch.residual.numpy()[0]


def compare_evaluation(model: mujoco.MjModel, seed: int) -> dict[str, float]:
    """Relative deviation from MuJoCo of everything one evaluation of the dynamics gives."""
    state, data, scene = random_state(model, seed), mujoco.MjData(model), scene_of(model)
    state.apply(data)
    mujoco.mj_forward(model, data)
    values = inputs_of(state)
    e = evaluation(scene, values)
    poses = query.body_poses(e.model, e.state)
    bias = query.bias_force(e.model, e.state).numpy()[0]
    mass_matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass_matrix)
    errors = {
        "position": relative_error(poses.position.numpy()[0], data.xpos),
        "rotation": relative_error(rotations(poses.rotation.numpy()[0]), data.xmat.reshape(-1, 3, 3)),
        "bias": relative_error(bias, data.qfrc_bias),
    }
    unforced = evaluation(scene, {**values, "joint_force": 0.0 * state.qvel, "wrench": 0.0 * state.xfrc_applied})
    passive_force = smooth_force(unforced, bias, actuated=False)
    actuator_force = smooth_force(unforced, bias, actuated=True) - passive_force
    scale = max(np.abs(data.qfrc_passive).max(), np.abs(data.qfrc_actuator).max(), np.abs(bias).max())
    errors["passive"] = np.abs(passive_force - data.qfrc_passive).max() / scale
    errors["actuator"] = np.abs(actuator_force - data.qfrc_actuator).max() / scale
    if model.nu:
        errors["actuator_force"] = relative_error(unforced.work.actuator_force.numpy()[0], data.actuator_force)
    if e.model.options.integrator != "implicitfast":  # whose matrix holds velocity derivatives besides
        rows = e.forward().mass_matrix.numpy()[0]
        errors["mass_matrix"] = relative_error(dense_mass_matrix(e.model, rows), mass_matrix)
    qdd = e.forward().qdd.numpy()[0]
    errors["acceleration"] = relative_error(qdd, stepped_acceleration(model, data))
    errors["step"] = relative_error(one_step(e, values), np.concatenate([data.qpos, data.qvel, data.act]))
    return errors


def one_step(e: Evaluation, values: dict[str, np.ndarray]) -> np.ndarray:
    """The next state: q, qd, activation."""
    names = [name for name in ("joint_force", "actuator", "wrench") if e.control[name].size]
    tape = CheckpointedTape(RigidProgram(e.model, controls=names), steps=1, capture=False)
    state = {name: array.numpy() for name, array in e.state.items()}
    controls = {name: np.asarray(values[name])[None, None] for name in names}
    with tape.forward(state, controls, keep_states=True, differentiate=False) as run:
        return np.concatenate([run.states[name].numpy()[1, 0] for name in run.states])


def rotations(quaternions: np.ndarray) -> np.ndarray:
    matrices = np.empty((len(quaternions), 9))
    for quaternion, matrix in zip(quaternions, matrices, strict=True):
        mujoco.mju_quat2Mat(matrix, quaternion)
    return matrices.reshape(-1, 3, 3)


def stepped_acceleration(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Takes a step and returns the acceleration it began with: explicit for RK4, else with MuJoCo's implicit terms."""
    smooth, before = data.qacc_smooth.copy(), data.qvel.copy()
    mujoco.mj_step(model, data)
    explicit = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    return smooth if explicit else (data.qvel - before) / model.opt.timestep


def assert_small(errors: dict[str, float], where: str) -> None:
    # The stepped acceleration is a difference of velocities: it keeps ε·|v|/h, about 1e-12, of round-off.
    assert all(error < TOLERANCE for error in errors.values()), (where, errors)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_robots_match(path, integrator):
    model = robot(path, integrator)
    for seed in range(2):
        assert_small(compare_evaluation(model, seed), path.stem)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_random_trees_match(integrator):
    for seed in range(QUICK):
        assert_small(compare_evaluation(random_model(seed, integrator), seed), f"seed {seed}")


@pytest.mark.long
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_all_random_trees_match(integrator):
    for seed in range(QUICK, QUICK + FULL):
        assert_small(compare_evaluation(random_model(seed, integrator), seed), f"seed {seed}")


SYMMETRIC = {
    "capsule": '<geom type="capsule" fromto=".1 .2 0 .3 -.1 .4" size=".05"/>',
    "turned capsule": '<geom type="capsule" euler="30 40 50" size=".05 .1"/>',
    "sphere": '<geom type="sphere" euler="10 20 30" size=".1"/>',
    "square box": '<geom type="box" euler="30 40 50" size=".1 .1 .2"/>',
    "several": '<geom type="cylinder" fromto=".1 .2 0 .3 -.1 .4" size=".05"/><geom pos=".3 0 0" size=".1"/>',
}


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("shape", SYMMETRIC)
def test_drag_of_symmetric_bodies_matches(shape, integrator):
    """Equal moments leave the principal axes open, but drag acts along them."""
    xml = f"""<mujoco><option density="1000" viscosity=".01" wind="1 2 -1"/><worldbody>
      <body><freejoint/>{SYMMETRIC[shape]}</body></worldbody></mujoco>"""
    model = unconstrained(mujoco.MjModel.from_xml_string(xml), integrator)
    for seed in range(3):
        assert_small(compare_evaluation(model, seed), shape)


def mujoco_trajectory(model: mujoco.MjModel, start: np.ndarray, control: np.ndarray, steps: int) -> np.ndarray:
    """(steps + 1, nq + nv + na) from a start (qpos, qvel, act) under a constant control."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:] = np.split(start, [model.nq, model.nq + model.nv])
    data.ctrl[:] = control
    states = [np.concatenate([data.qpos, data.qvel, data.act])]
    for _ in range(steps):
        mujoco.mj_step(model, data)
        states.append(np.concatenate([data.qpos, data.qvel, data.act]))
    assert not any(warning.number for warning in data.warning), "MuJoCo reset the simulation"
    return np.array(states)


def our_trajectory(model: mujoco.MjModel, start: np.ndarray, control: np.ndarray, steps: int) -> np.ndarray:
    e = evaluation(scene_of(model), {})
    tape = CheckpointedTape(RigidProgram(e.model, controls=["actuator"]), steps=steps, memory=Memory(segment=10))
    state = initial_state(e.model, *np.split(start, [model.nq, model.nq + model.nv]))
    controls = np.ascontiguousarray(np.broadcast_to(control, (steps, 1, model.nu)))
    with tape.forward(state, {"actuator": controls}, keep_states=True, differentiate=False) as run:
        parts = [run.states[name].numpy()[:, 0] for name in run.states]
    return np.concatenate(parts, axis=1)


def trajectory_ratio(model: mujoco.MjModel, seed: int, steps: int) -> float:
    """Largest of (our distance from MuJoCo) / (MuJoCo's from itself under nudges so far), over all steps."""
    rng = np.random.default_rng(seed)
    state = random_state(model, seed, speed=0.2)
    start = np.concatenate([state.qpos, state.qvel, state.act])
    control = 0.2 * state.ctrl
    truth = mujoco_trajectory(model, start, control, steps)
    spread = np.zeros(steps + 1)
    for _ in range(5):
        nudged = mujoco_trajectory(model, start + NUDGE * rng.choice([-1.0, 1.0], len(start)), control, steps)
        spread = np.maximum(spread, np.abs(nudged - truth).max(axis=1))
    ours = np.abs(our_trajectory(model, start, control, steps) - truth).max(axis=1)
    return float((ours / np.maximum.accumulate(spread)).max())


QUICK_ROBOTS = [path for path in ROBOTS if path.stem in ("humanoid", "panda")]


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("path", QUICK_ROBOTS, ids=lambda path: path.stem)
def test_trajectories_stay_as_close_as_mujoco_to_itself(path, integrator):
    assert trajectory_ratio(robot(path, integrator), 0, 1000) < 100


@pytest.mark.long
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_all_trajectories_stay_as_close_as_mujoco_to_itself(path, integrator):
    for seed in range(1, 3):
        assert trajectory_ratio(robot(path, integrator), seed, 1000) < 100


def test_a_moved_model_is_compared_at_all():
    """The comparison has teeth: a mass changed by 1e-6 is seen."""
    model = random_model(3)
    state, data = random_state(model, 3), mujoco.MjData(model)
    state.apply(data)
    e = evaluation(scene_of(model), inputs_of(state))
    e.model.body.mass.assign(e.model.body.mass.numpy() * (1.0 + 1e-6))
    wp.synchronize()
    assert relative_error(e.forward().qdd.numpy()[0], stepped_acceleration(model, data)) > TOLERANCE
