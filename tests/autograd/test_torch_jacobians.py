"""A and B of single steps against MuJoCo's finite differences, in its tangent space."""

from __future__ import annotations

import time

import mujoco
import numpy as np
import pytest
import torch

from random_models import random_mjcf, random_state
from simulator_support import ARM, PUCK, arm, compiled
from warpsim.core.errors import InputError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.sim.simulator import Simulator


def finite_differences(model: mujoco.MjModel, state: dict[str, np.ndarray], control: np.ndarray):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = state["q"], state["qd"], control
    if model.na:
        data.act[:] = state["activation"]
    n = 2 * model.nv + model.na
    a, b = np.zeros((n, n)), np.zeros((n, model.nu))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, a, b, None, None)
    return a, b


def compare(
    model: mujoco.MjModel, q: np.ndarray, qd: np.ndarray, controls: np.ndarray, tolerance: float = 2e-7
) -> None:
    sim = Simulator(scene_from_mjmodel(model))
    u = torch.tensor(controls)
    trajectory = sim.rollout(controls=u, q=q, qd=qd)
    a, b = sim.jacobians(trajectory, u)
    n = 2 * model.nv + model.na
    assert a.shape == (len(controls), 1, n, n) and b.shape == (len(controls), 1, n, model.nu)
    for step, control in enumerate(controls):
        state = {name: trajectory.numpy(name)[step, 0] for name in trajectory if name in ("q", "qd", "activation")}
        expected_a, expected_b = finite_differences(model, state, control)
        scale = np.abs(expected_a).max()
        np.testing.assert_allclose(a[step, 0].numpy(), expected_a, rtol=1e-6, atol=tolerance * scale)
        np.testing.assert_allclose(b[step, 0].numpy(), expected_b, rtol=1e-6, atol=tolerance * scale)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_an_arm_with_activations(integrator):
    rng = np.random.default_rng(0)
    compare(
        compiled(ARM.format(integrator=integrator)), rng.normal(size=2), rng.normal(size=2), rng.normal(size=(3, 2))
    )


@pytest.mark.parametrize("seed", [1, 4])
def test_random_trees_with_free_and_ball_joints(seed):
    model = compiled(random_mjcf(seed, bodies=6))
    state = random_state(model, seed)
    compare(model, state.qpos, state.qvel, 0.1 * np.random.default_rng(seed).normal(size=(2, model.nu)))


def test_a_ball_in_contact():
    press = "</worldbody><actuator><general site='s' gear='0 0 1 0 0 0'/></actuator>"
    xml = PUCK.replace("</worldbody>", press).replace("<freejoint/>", "<freejoint/><site name='s'/>")
    model = compiled(xml)
    model.opt.tolerance = 1e-14
    q = np.array([0, 0, 0.0497, 1, 0, 0, 0])
    compare(model, q, np.array([0.3, 0.1, 0.0, 0.1, 0.2, 0.3]), np.full((3, 1), -2.0), tolerance=1e-5)


def humanoid_on_the_ground(assets_dir, steps: int):
    """A fallen humanoid: the model, its simulator, and a short rollout in contact under random controls."""
    model = mujoco.MjModel.from_xml_path(str(assets_dir / "mujoco_humanoid/mjcf/humanoid.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=400)
    assert data.ncon >= 8
    sim = Simulator(scene_from_mjmodel(model))
    controls = torch.tensor(0.2 * np.random.default_rng(0).normal(size=(steps, model.nu)))
    return model, sim, sim.rollout(controls=controls, q=data.qpos, qd=data.qvel), controls


def at_step(model: mujoco.MjModel, data: mujoco.MjData, trajectory, controls: torch.Tensor, step: int) -> None:
    data.qpos[:], data.qvel[:] = trajectory.numpy("q")[step, 0], trajectory.numpy("qd")[step, 0]
    data.ctrl[:], data.qacc_warmstart[:] = controls[step].numpy(), 0.0


def test_a_humanoid_in_contact(assets_dir):
    model, sim, trajectory, controls = humanoid_on_the_ground(assets_dir, 10)
    model.opt.tolerance, model.opt.iterations = 1e-14, 200
    a, b = sim.jacobians(trajectory, controls)
    data, n = mujoco.MjData(model), 2 * model.nv
    assert a.shape == (10, 1, n, n)
    expected_a, expected_b = np.zeros((n, n)), np.zeros((n, model.nu))
    for step in range(10):
        at_step(model, data, trajectory, controls, step)
        mujoco.mjd_transitionFD(model, data, 1e-7, True, expected_a, expected_b, None, None)
        scale = np.abs(expected_a).max()
        np.testing.assert_allclose(a[step, 0].numpy(), expected_a, rtol=0, atol=1e-8 * scale)
        np.testing.assert_allclose(b[step, 0].numpy(), expected_b, rtol=0, atol=1e-8 * scale)


@pytest.mark.long
def test_they_cost_less_than_mujocos_finite_differences(assets_dir):
    model, sim, trajectory, controls = humanoid_on_the_ground(assets_dir, 40)
    data, n = mujoco.MjData(model), 2 * model.nv
    a, b = np.zeros((n, n)), np.zeros((n, model.nu))

    def differences() -> None:
        for step in range(40):
            at_step(model, data, trajectory, controls, step)
            mujoco.mjd_transitionFD(model, data, 1e-6, False, a, b, None, None)

    def cost(work) -> float:
        start = time.thread_time()
        work()
        return time.thread_time() - start

    sim.jacobians(trajectory, controls)
    pairs = [(cost(lambda: sim.jacobians(trajectory, controls)), cost(differences)) for _ in range(5)]
    ours, theirs = (min(times) for times in zip(*pairs, strict=True))
    assert ours < theirs


def test_a_product_of_the_jacobians_is_the_gradient_of_the_rollout():
    sim = Simulator(arm(), worlds=2, controls=("actuator", "joint_force"))
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(5, 2, sim.control_size, dtype=torch.float64, generator=generator).requires_grad_()
    q = torch.randn(2, 2, dtype=torch.float64, generator=generator).requires_grad_()
    density = sim.parameter("shape.density") * torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    sim.set_parameters({"shape.density": density})
    trajectory = sim.rollout(controls=u, q=q)
    by_q, by_u = torch.autograd.grad(trajectory.q[-1].sum(), (q, u))
    a, b = sim.jacobians(trajectory, u)
    adjoint = torch.zeros(2, a.shape[-1], dtype=torch.float64)
    adjoint[:, :2] = 1.0
    for step in reversed(range(5)):
        torch.testing.assert_close(torch.einsum("wi,wij->wj", adjoint, b[step]), by_u[step], rtol=1e-11, atol=1e-13)
        adjoint = torch.einsum("wi,wij->wj", adjoint, a[step])
    torch.testing.assert_close(adjoint[:, :2], by_q, rtol=1e-11, atol=1e-13)


def test_without_controls_they_are_the_defaults():
    sim = Simulator(arm())
    trajectory = sim.rollout(steps=3, q=[0.1, 0.2])
    plain = sim.jacobians(trajectory)
    explicit = sim.jacobians(trajectory, torch.zeros(3, 2))
    assert torch.equal(plain.A, explicit.A) and torch.equal(plain.B, explicit.B)
    with pytest.raises(InputError, match="controls has shape"):
        sim.jacobians(trajectory, torch.zeros(4, 2))


def test_they_belong_to_the_parameters_the_trajectory_was_made_with():
    sim = Simulator(arm())
    heavy = {"shape.density": 3.0 * sim.parameter("shape.density")}
    light, once = sim.rollout(3, q=[0.1, 0.2]), sim.rollout(3, q=[0.1, 0.2], parameters=heavy)
    expected = sim.jacobians(light)
    sim.set_parameters(heavy)
    changed = sim.jacobians(sim.rollout(3, q=[0.1, 0.2]))
    assert torch.equal(sim.jacobians(light).A, expected.A)
    assert torch.equal(sim.jacobians(once).A, changed.A) and not torch.equal(changed.A, expected.A)
    sim.set_parameters(None)
    assert torch.equal(sim.jacobians(once).B, changed.B)


def test_trajectories_without_all_steps_or_of_others_are_refused():
    sim, other = Simulator(arm()), Simulator(arm())
    with pytest.raises(InputError, match="made by another simulator, or saved and loaded"):
        sim.jacobians(other.rollout(3))
    for trajectory in (sim.rollout(4, keep_every=2), sim.rollout(4).every(2), sim.rollout(2, keep_every=3)):
        with pytest.raises(InputError, match="keep_every=1"):
            sim.jacobians(trajectory)
