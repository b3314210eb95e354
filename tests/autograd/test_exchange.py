"""What is exchanged with callers: shared memory where that is promised, else copies, or errors where values are old."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import warp as wp

from simulator_support import arm
from warpsim.sim.simulator import Simulator
from warpsim.tape.parameters import StaleInputError

THROW = Path(__file__).resolve().parents[2] / "scenes" / "throw.usda"
Q = [[0.3, -0.2], [0.1, 0.4]]


@pytest.fixture
def sim() -> Simulator:
    return Simulator(arm(), worlds=2)


def tensor(values, requires_grad: bool = False) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=requires_grad)


@pytest.mark.parametrize("kind", ["tensor", "numpy"])
def test_what_was_given_to_reset_can_be_changed_afterwards(sim, kind):
    q, qd = (tensor(Q) if kind == "tensor" else np.array(Q) for _ in range(2))
    sim.reset(q=q, qd=qd)
    before, state = sim.rollout(3), sim.state
    q[0, 0], qd[0, 0] = 9.0, 9.0
    after = sim.rollout(3)
    assert torch.equal(before.q, after.q) and torch.equal(before.qd, after.qd)
    assert torch.equal(sim.state.q, state.q) and torch.equal(sim.state.qd, state.qd)


@pytest.mark.parametrize("source", ["reset", "state", "step", "initial_state", "policy"])
@pytest.mark.parametrize("way", ["torch", "numpy"])
def test_what_is_shown_can_be_changed_without_moving_the_simulation(sim, source, way):
    def spoil(shown):
        for name in ("q", "qd", "activation"):
            if way == "torch":
                shown[name].fill_(9.0)
            else:
                shown.numpy(name)[...] = 9.0

    def policy(spoiled: bool):
        def act(state):
            answer = 0.1 * state.qd
            if spoiled:
                spoil(state)
            return answer

        return act

    twin = Simulator(arm(), worlds=2)
    sim.reset(q=Q), twin.reset(q=Q)
    if source == "policy":
        looped, expected = sim.rollout_policy(policy(True), 3), twin.rollout_policy(policy(False), 3)
        assert torch.equal(looped.q, expected.q) and torch.equal(looped["body_position"], expected["body_position"])
    elif source == "step":
        spoil(sim.step()), twin.step()
    else:
        spoil({"reset": lambda: sim.reset(q=Q), "state": lambda: sim.state}.get(source, sim.initial_state)())
    assert torch.equal(sim.step().q, twin.step().q)
    assert torch.equal(sim.rollout(3).q, twin.rollout(3).q)


def test_default_controls_are_a_copy(sim):
    sim.all_controls(1)["actuator"].fill_(5.0)
    assert not sim.all_controls(1)["actuator"].any()


def test_an_optimizer_that_moves_a_start_given_to_reset_is_noticed(sim):
    q = tensor(Q, requires_grad=True)
    optimizer = torch.optim.SGD([q], lr=0.1)
    sim.reset(q=q)
    sim.rollout(3).q.sum().backward()
    sim.rollout(3).q.sum().backward()  # nothing has changed
    optimizer.step()
    with pytest.raises(StaleInputError, match="'q' was changed in place.*give it to `reset` again"):
        sim.rollout(3)
    assert torch.equal(sim.rollout(3, q=q).q[0], q)
    sim.reset(q=q)
    assert torch.equal(sim.rollout(3).q[0], q)


def test_an_optimizer_that_moves_parameters_in_force_is_noticed(sim):
    density = sim.parameter("shape.density")[0].requires_grad_()
    sim.set_parameters({"shape.density": density})
    sim.rollout(3).q.sum().backward()
    with torch.no_grad():
        density.mul_(2.0)
    for call in (lambda: sim.rollout(3), sim.step, sim.reset, lambda: sim.parameter("shape.density")):
        with pytest.raises(StaleInputError, match="'shape.density' was changed in place.*`set_parameters` again"):
            call()
    moved = sim.rollout(3, parameters={"shape.density": density.detach()})
    sim.set_parameters({"shape.density": density})
    assert torch.equal(sim.rollout(3).q, moved.q)


def test_values_of_attributes_are_copied():
    sim = Simulator(THROW)
    velocity = sim.attribute("/World/Ball.physics:velocity")
    value = velocity.value
    sim.set_parameters({velocity: value})
    before = sim.rollout(3)
    value.fill_(9.0)
    mass = sim.attribute("/World/Ball/Shape.physics:mass")
    assert torch.equal(sim.rollout(3, parameters={mass: mass.value}).q, before.q)
    np.testing.assert_array_equal(before.made_with.values(0)[0].value, velocity.value)


def test_numbers_of_attributes_are_not_rounded_to_single_precision():
    sim = Simulator(THROW)
    mass = sim.attribute("/World/Ball/Shape.physics:mass")
    made = sim.rollout(1, parameters={mass: 0.1}).made_with
    assert made.values(0)[0].value == 0.1


def test_controls_are_read_where_they_lie(sim):
    """No copy on the way in: the tape reads the caller's memory, and notices when it changes before the way back."""
    u = torch.zeros(4, 2, 2, dtype=torch.float64)
    q = tensor(Q, requires_grad=True)
    loss = sim.rollout(controls=u, q=q).q.sum()
    u.numpy()[:] = 1.0  # past torch's counter of versions
    with pytest.raises(StaleInputError, match="changed between the forward and the backward pass"):
        loss.backward()


def test_a_trajectory_is_one_memory_for_torch_numpy_warp_and_dlpack(sim):
    trajectory = sim.rollout(3)
    address = trajectory.q.data_ptr()
    assert trajectory.numpy("q").ctypes.data == address
    assert trajectory.warp("q").ptr == address
    assert torch.from_dlpack(trajectory.q).data_ptr() == address
    assert np.from_dlpack(trajectory.q).ctypes.data == address
    assert wp.from_dlpack(trajectory.q).ptr == address
    stepped = sim.step()
    assert stepped.numpy("q").ctypes.data == stepped.q.data_ptr()


def test_single_precision_comes_and_goes_at_the_border(sim):
    leaves = {
        "q": torch.tensor(Q, requires_grad=True),
        "u": torch.zeros(3, 2, 2, requires_grad=True),
        "shape.density": sim.parameter("shape.density")[0].float().requires_grad_(),
    }
    twins = {name: leaf.detach().double().requires_grad_() for name, leaf in leaves.items()}

    def run(given):
        parameters = {"shape.density": given["shape.density"]}
        return sim.rollout(controls=given["u"], q=given["q"], parameters=parameters).q.square().sum()

    found = torch.autograd.grad(run(leaves), list(leaves.values()))
    expected = torch.autograd.grad(run(twins), list(twins.values()))
    for got, wanted in zip(found, expected, strict=True):
        assert got.dtype == torch.float32
        torch.testing.assert_close(got, wanted.float())
    sim.reset(q=leaves["q"])
    (gradient,) = torch.autograd.grad(sim.step(leaves["u"][0]).q.sum(), leaves["u"])
    assert gradient.dtype == torch.float32 and gradient[0].abs().max() > 0
