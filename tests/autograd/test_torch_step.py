"""The plain loop: the same states, bit for bit, and the same gradient as a rollout, with torch code between steps."""

from __future__ import annotations

import pytest
import torch

from simulator_support import arm, puck, tumbler
from warpsim.core.errors import InputError, SimulationError
from warpsim.sim.simulator import Simulator
from warpsim.tape.memory import Memory

STEPS = 12


def numbers(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone().requires_grad_()


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(arm(), worlds=2, outputs=("body_position", "kinetic_energy"))


def loop(sim: Simulator, q, qd, u, density):
    """States and outputs of a loop, stacked as in a trajectory."""
    sim.set_parameters({"shape.density": density})
    rows = [sim.reset(q=q, qd=qd)]
    for control in u:
        rows.append(sim.step(control))
    sim.set_parameters(None)
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}


def test_states_outputs_and_gradients_are_those_of_a_rollout(sim):
    inputs = [
        leaf(numbers(0, 2, 2)),
        leaf(numbers(1, 2, 2)),
        leaf(numbers(2, STEPS, 2, 2)),
        leaf(sim.parameter("shape.density")[0]),
    ]
    q, qd, u, density = inputs
    stepped = loop(sim, q, qd, u, density)
    rolled = sim.rollout(controls=u, q=q, qd=qd, parameters={"shape.density": density})
    weights = {name: numbers(i, *rolled[name].shape) for i, name in enumerate(rolled)}
    for name in rolled:
        assert torch.equal(stepped[name], rolled[name]), name
    losses = [sum((weights[name] * made[name]).sum() for name in weights) for made in (stepped, rolled)]
    for a, b in zip(*(torch.autograd.grad(loss, inputs) for loss in losses), strict=True):
        assert b.abs().max() > 0
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12 * float(b.abs().max()))


def test_in_contact_a_loop_and_a_policy_are_a_rollout():
    sim = Simulator(puck(), controls=("wrench",))
    u = 0.1 * numbers(0, 5, 1, sim.control_size)
    u[..., 8] -= 2.0  # pressed down
    u.requires_grad_()
    qd = leaf(torch.tensor([0.5, 0.2, 0.0, 0.1, 0.2, 0.3], dtype=torch.float64))
    state = sim.reset(qd=qd)
    for control in u:
        state = sim.step(control)
    rolled = sim.rollout(controls=u, qd=qd)
    remaining = list(u)
    closed = sim.rollout_policy(lambda _: remaining.pop(0), 5, qd=qd, memory=Memory(segment=5))
    assert set(closed) == set(rolled)
    gradients = []
    for q in (rolled.q[-1], state.q, closed.q[-1]):
        assert torch.equal(q, rolled.q[-1])
        remaining = list(u)
        gradients.append(torch.autograd.grad(q.sum(), (u, qd)))
    for other in gradients[1:]:
        for a, b in zip(other, gradients[0], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-13)


def test_gradcheck_of_a_feedback_loop():
    sim = Simulator(tumbler())

    def run(q, qd, gain):
        state = sim.reset(q=q, qd=qd)
        for _ in range(4):
            state = sim.step(torch.tanh(gain * state.qd) + state.q[:, 2:])
        return state.q, state.body_position("flail")

    inputs = (
        leaf(sim.state.q[0] + 0.1 * numbers(0, sim.nq)),
        leaf(numbers(1, sim.nv)),
        leaf(-numbers(2, sim.nv).abs()),
    )
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, eps=1e-6, atol=1e-6, rtol=1e-6)


def test_a_loop_keeps_only_states_and_controls(sim):
    sim.reset()
    node = sim.step(leaf(numbers(0, 2, 2))).q.grad_fn
    kept = sum(tensor.numel() for tensor in node.saved_tensors)
    assert kept == 2 * (sim.nq + sim.nv + 1) + 2 * sim.control_size


def test_two_loops_interleaved_with_a_rollout(sim):
    u = leaf(numbers(0, 4, 2, 2))
    state = sim.reset()
    for control in u:
        state = sim.step(control)
        sim.rollout(steps=3)  # shares the engine, must leave the current state alone
    (got,) = torch.autograd.grad(state.q.sum(), u)
    (expected,) = torch.autograd.grad(sim.rollout(controls=u).q[-1].sum(), u)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-14)


def test_a_rollout_continues_the_loop_and_its_graph(sim):
    u = leaf(numbers(0, 6, 2, 2))
    sim.reset()
    for control in u[:2]:
        sim.step(control)
    (got,) = torch.autograd.grad(sim.rollout(controls=u[2:], start=sim.state).q[-1].sum(), u)
    (expected,) = torch.autograd.grad(sim.rollout(controls=u).q[-1].sum(), u)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-14)


def test_time_counts_steps_since_the_reset(sim):
    sim.reset()
    for _ in range(3):
        sim.step()
    assert sim.time == pytest.approx(0.03)
    sim.reset(worlds=[0])
    assert sim.time == pytest.approx(0.03)
    sim.reset()
    assert sim.time == 0.0


def test_misuse(sim):
    sim.reset()
    with pytest.raises(InputError, match=r"controls has shape \(3,\); needed: \(2, 2\) = \(worlds, …\), or \(2,\)"):
        sim.step(torch.zeros(3))
    with pytest.raises(SimulationError, match="not finite at step 1, world 0"):
        sim.step(torch.full((2, 2), torch.nan))
    assert torch.isfinite(sim.state.q).all()
