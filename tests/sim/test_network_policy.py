"""Networks in kernels: the same closed loop, and the same gradients, as the same network in torch."""

from __future__ import annotations

import pytest
import torch

from simulator_support import arm
from warpsim.core.errors import InputError
from warpsim.sim.simulator import Simulator
from warpsim.tape import Memory, frames

STEPS = 13


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(arm(), worlds=3, outputs=("body_position",))


def start() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {n: torch.randn(3, 2, dtype=torch.float64, generator=generator, requires_grad=True) for n in ("q", "qd")}


def loss_of(trajectory) -> torch.Tensor:
    return trajectory.q.square().sum() + trajectory["body_position"][-1].sum() + trajectory.qd.sum()


def small_policy(sim: Simulator, **options):
    policy = sim.network_policy(hidden=(6, 5), seed=3, **options)
    with torch.no_grad():
        for layer in policy.layers:
            layer.bias.uniform_(-0.3, 0.3, generator=torch.Generator().manual_seed(5))
    return policy


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize(("hold", "delay"), [(1, 0), (3, 0), (1, 2), (2, 3), (4, 1)])
def test_kernels_and_torch_agree(sim, hold, delay, activation):
    policy, initial = small_policy(sim, activation=activation), start()
    inputs = [*policy.parameters(), *initial.values()]
    results = []
    for in_kernels in (True, False):
        trajectory = sim.rollout_policy(policy, STEPS, **initial, hold=hold, delay=delay, in_kernels=in_kernels)
        results.append((trajectory, torch.autograd.grad(loss_of(trajectory), inputs)))
    (ours, ours_gradient), (expected, expected_gradient) = results
    for name in ("q", "qd", "body_position"):
        torch.testing.assert_close(ours[name], expected[name], rtol=1e-11, atol=1e-12)
    for got, wanted in zip(ours_gradient, expected_gradient, strict=True):
        assert wanted.abs().max() > 0
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-11)


def test_threads_segments_and_budgets_change_no_bit(sim):
    policy, initial = small_policy(sim), start()
    inputs = list(policy.parameters())
    results = []
    for options in ({}, {"threads": 3}, {"memory": Memory(segment=4)}, {"memory": "2MB"}):
        trajectory = sim.rollout_policy(policy, STEPS, **initial, hold=2, delay=1, **options)
        results.append((trajectory.q.detach(), *torch.autograd.grad(loss_of(trajectory), inputs)))
    for other in results[1:]:
        for got, wanted in zip(other, results[0], strict=True):
            assert torch.equal(got, wanted)


def test_gradients_of_weights_and_parameters_agree_with_differences(sim):
    policy = small_policy(sim)
    density = sim.parameter("shape.density")[0].requires_grad_()
    initial = {name: tensor.detach() for name, tensor in start().items()}

    def loss(density: torch.Tensor) -> torch.Tensor:
        return loss_of(sim.rollout_policy(policy, 6, **initial, parameters={"shape.density": density}))

    weight = policy.layers[1].weight
    by_density, by_weight = torch.autograd.grad(loss(density), [density, weight])
    direction = torch.randn(weight.shape, dtype=weight.dtype, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        h, kept = 1e-5, weight.clone()
        ends = []
        for sign in (1, -1):
            weight.copy_(kept + sign * h * direction)
            ends.append(loss(density))
        weight.copy_(kept)
        difference = (ends[0] - ends[1]) / (2 * h)
        moved = [loss(density * (1 + sign * 1e-6)) for sign in (1, -1)]
    assert (by_weight * direction).sum() == pytest.approx(float(difference), rel=1e-7)
    assert (by_density * density.detach()).sum() == pytest.approx(float((moved[0] - moved[1]) / 2e-6), rel=1e-6)


def test_an_update_before_the_backward_pass_does_not_reach_it(sim):
    policy, initial = small_policy(sim), start()
    inputs = list(policy.parameters())
    expected = torch.autograd.grad(loss_of(sim.rollout_policy(policy, 4, **initial)), inputs)
    loss = loss_of(sim.rollout_policy(policy, 4, **initial))
    other = small_policy(sim, activation="relu")
    sim.rollout_policy(other, 4, **initial)  # another network's weights in between
    with torch.no_grad():
        policy.layers[0].bias.add_(1.0)
    for got, wanted in zip(torch.autograd.grad(loss, inputs), expected, strict=True):
        assert torch.equal(got, wanted)


def test_what_a_network_cannot_do_is_said(sim):
    with pytest.raises(InputError, match="only a NetworkPolicy"):
        sim.rollout_policy(lambda state: state.q, 2, in_kernels=True)
    with pytest.raises(InputError, match="for policies in kernels"):
        sim.rollout_policy(lambda state: state.q, 2, threads=2)
    with pytest.raises(KeyError, match="activation"):
        sim.network_policy(activation="tan")
    with pytest.raises(InputError, match="not wrenches"):
        Simulator(arm(), controls=("wrench",)).network_policy()


def test_clipping_bounds_the_adjoint_between_segments(sim):
    """Two steps in two segments by hand: the adjoint at the step between them is scaled down world by world."""
    first = {name: tensor.detach().requires_grad_() for name, tensor in start().items()}
    names = [name for name in ("q", "qd", "activation") if name in sim.state]
    seed = torch.tensor([[1.0], [50.0], [2.0]], dtype=torch.float64)
    whole = sim.rollout(2, start=first, memory=Memory(segment=1), clip=20.0)
    ours = torch.autograd.grad((seed * whole.q[-1]).sum(), list(first.values()))
    begun = sim.rollout(1, start=first)
    middle = {name: begun[name][-1].detach().requires_grad_() for name in names}
    adjoint = torch.autograd.grad((seed * sim.rollout(1, start=middle).q[-1]).sum(), list(middle.values()))
    norm = torch.cat(adjoint, -1).norm(dim=-1, keepdim=True)
    assert norm[1] > 20.0 and norm[0] < 20.0
    clipped = [a * (20.0 / norm).clamp(max=1.0) for a in adjoint]
    expected = torch.autograd.grad([begun[name][-1] for name in names], list(first.values()), clipped)
    for got, wanted in zip(ours, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-12)


def test_blocks_without_a_view_in_host_memory(monkeypatch):
    """As on a GPU: every copy, checksum and clearing goes through Warp, also of the inputs, of which there are none."""

    def run():
        sim = Simulator(arm(), worlds=3, outputs=("body_position",))
        policy, initial = small_policy(sim), start()
        trajectory = sim.rollout_policy(policy, STEPS, **initial, memory=Memory(segment=4))
        inputs = [*policy.parameters(), *initial.values()]
        return [trajectory.q.detach().clone(), *torch.autograd.grad(loss_of(trajectory), inputs)]

    expected = run()
    make = frames.Block.__init__

    def blind(block, array, host=None):
        make(block, array, host)
        block.host = None

    monkeypatch.setattr(frames.Block, "__init__", blind)
    monkeypatch.setattr(frames.Block, "over", lambda host, dtype: frames.Block(frames._array_over(host, dtype)))
    for got, wanted in zip(run(), expected, strict=True):
        assert torch.equal(got, wanted)
