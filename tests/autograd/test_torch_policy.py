"""Closed loops: a torch module between steps, with gradients through policy and physics in bounded memory."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from simulator_support import arm
from warpsim.core.errors import InputError
from warpsim.sim.policy_rollout import Timing
from warpsim.sim.simulator import Simulator
from warpsim.tape import FullTape, Memory, Revolve, Windows
from warpsim.tape.parameters import StaleInputError

STEPS = 11


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(arm(), worlds=2, outputs=("body_position",))


class Policy(torch.nn.Module):
    """A small network of what a robot would see, in single precision by default."""

    def __init__(self, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(7, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(dtype)
        self.dtype = dtype
        self.calls = 0

    def forward(self, state) -> torch.Tensor:
        self.calls += 1
        seen = torch.cat([state.q, state.qd, state.body_position("fore")], -1)
        return self.layers(seen.to(self.dtype))


def start(requires_grad: bool = False) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    made = {name: torch.randn(2, 2, dtype=torch.float64, generator=generator) for name in ("q", "qd")}
    return {name: tensor.requires_grad_(requires_grad) for name, tensor in made.items()}


def by_hand(sim: Simulator, policy: Policy, initial, hold: int = 1, delay: int = 0):
    """The loop as one would write it: the control asked for at step j·hold acts from j·hold + delay on."""
    state = sim.reset(**initial)
    asked, rows = {}, [state]
    for step in range(STEPS):
        if step % hold == 0:
            asked[step] = policy(state)
        acting = [when for when in asked if when + delay <= step]
        state = sim.step(asked[max(acting)] if acting else torch.zeros(2, 2))
        rows.append(state)
    sim.reset()
    return {name: torch.stack([row[name] for row in rows]) for name in ("q", "qd", "body_position")}


def loss_of(trajectory) -> torch.Tensor:
    return trajectory["q"].square().sum() + trajectory["body_position"][-1].sum() + trajectory["qd"].sum()


@pytest.mark.parametrize(("hold", "delay"), [(1, 0), (3, 0), (1, 2), (2, 3), (4, 1)])
def test_the_loop_and_its_gradient_are_those_written_by_hand(sim, hold, delay):
    policy, initial = Policy(), start(requires_grad=True)
    inputs = [*policy.parameters(), *initial.values()]
    expected = by_hand(sim, policy, initial, hold, delay)
    trajectory = sim.rollout_policy(policy, STEPS, **initial, hold=hold, delay=delay, memory=Memory(segment=4))
    for name, value in expected.items():
        assert torch.equal(trajectory[name], value), name
    pairs = zip(
        torch.autograd.grad(loss_of(trajectory), inputs),
        torch.autograd.grad(loss_of(expected), inputs),
        strict=True,
    )
    for got, wanted in pairs:
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-13)


def test_gradcheck_through_policy_physics_and_parameters(sim):
    policy = Policy()
    names = [name for name, _ in policy.named_parameters()]

    def run(q, density, *weights):
        call = torch.func.functional_call
        trajectory = sim.rollout_policy(
            lambda state: call(policy, dict(zip(names, weights, strict=True)), (state,)),
            5,
            q=q,
            parameters={"shape.density": density},
            memory=Memory(segment=2),
            delay=1,
        )
        return trajectory.q, trajectory["body_position"]

    weights = [parameter.detach().clone().requires_grad_() for parameter in policy.parameters()]
    density = sim.parameter("shape.density")[0].requires_grad_()
    inputs = (start(True)["q"], density, *weights)
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, eps=1e-6, atol=1e-6, rtol=1e-6)


def test_segments_change_memory_not_numbers(sim):
    policy, initial = Policy(), start()
    results = []
    for segment in (1, 4, STEPS, None):
        loss = loss_of(sim.rollout_policy(policy, STEPS, **initial, memory=Memory(segment=segment)))
        results.append(torch.autograd.grad(loss, list(policy.parameters())))
    for other in results[1:]:
        for got, wanted in zip(other, results[0], strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-14)


def test_activations_are_recomputed_not_stored(sim):
    policy = Policy()
    trajectory = sim.rollout_policy(policy, STEPS, **start(), memory=Memory(segment=4))
    assert policy.calls == STEPS
    loss_of(trajectory).backward()
    assert policy.calls == 2 * STEPS - 3  # the last segment, of 3 steps, is differentiated as it was run


CUTS = [
    Memory(schedule=FullTape()),
    Memory(segment=1),
    Memory(segment=4),
    Memory(segment=1, schedule=Revolve(1)),
    Memory(segment=1, schedule=Revolve(3)),
    Memory(segment=2, schedule=Revolve(2)),
]


@pytest.mark.parametrize("memory", CUTS, ids=str)
def test_schedules_are_those_of_the_tape(sim, memory):
    """As many calls as the plan says, the same bits of states and of gradients by the initial state, also twice."""
    policy, initial = Policy(), start(True)
    plan = Timing().plan(STEPS, memory)
    trajectory = sim.rollout_policy(policy, STEPS, **initial, memory=memory)
    whole = sim.rollout_policy(Policy(), STEPS, **initial, memory=Memory(segment=STEPS))
    assert torch.equal(trajectory.q, whole.q) and policy.calls == STEPS
    leaves = list(initial.values())
    expected = torch.autograd.grad(loss_of(whole), leaves)
    loss = loss_of(trajectory)
    for _ in range(2):
        found = torch.autograd.grad(loss, leaves, retain_graph=True)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    policy = Policy()
    loss_of(sim.rollout_policy(policy, STEPS, **start(), memory=memory)).backward()
    assert policy.calls == round(STEPS * plan.forward_evaluations)


@pytest.mark.parametrize("memory", CUTS, ids=str)
def test_random_numbers_are_repeated_under_every_schedule(sim, memory):
    def policy(state):
        return -0.5 * state.qd + 0.1 * torch.randn_like(state.qd)

    initial = start(True)
    found = []
    for cut in (memory, Memory(segment=STEPS)):
        torch.manual_seed(5)
        made = sim.rollout_policy(policy, STEPS, **initial, memory=cut)
        after = torch.get_rng_state()
        found.append((made.q.detach(), *torch.autograd.grad(loss_of(made), list(initial.values()))))
        assert torch.equal(after, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_windows_cut_the_gradient(sim):
    """The adjoint of the second window's start goes nowhere, whatever the segments within windows are."""
    policy, initial = Policy(), start(True)
    weights = list(policy.parameters())
    first = sim.rollout_policy(policy, 6, **initial)
    state = {name: first[name][-1].detach() for name in sim.state_names}
    second = sim.rollout_policy(policy, STEPS - 6, start=state)
    loss = sum(t["q"].square().sum() for t in (first, second)) - second["q"][0].square().sum()
    expected = torch.autograd.grad(loss, weights)
    for segment in (None, 2, 6):
        memory = Memory(segment=segment, schedule=Windows(6))
        made = sim.rollout_policy(policy, STEPS, **initial, memory=memory)
        found = torch.autograd.grad(made["q"].square().sum(), weights)
        for got, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-11, atol=1e-13)


def test_a_single_precision_policy_drives_the_simulator(sim):
    policy = Policy(torch.float32)
    loss_of(sim.rollout_policy(policy, STEPS, **start())).backward()
    gradients = [parameter.grad for parameter in policy.parameters()]
    assert all(g.dtype == torch.float32 and torch.isfinite(g).all() and g.abs().max() > 0 for g in gradients)


def test_without_gradients_nothing_is_recorded(sim):
    with torch.no_grad():
        trajectory = sim.rollout_policy(Policy(), STEPS, **start())
    assert not trajectory.q.requires_grad


def test_timing_is_checked():
    assert [Timing(hold=2, delay=3).age(step) for step in range(3, 8)] == [1, 2, 1, 2, 1]
    with pytest.raises(InputError, match="must be 1 or more"):
        Timing(hold=0)


def test_a_policy_of_the_wrong_shape_is_named(sim):
    with pytest.raises(InputError, match="the policy's control has shape"):
        sim.rollout_policy(lambda state: state.q[:, :1], 2)


def test_weights_that_change_before_the_backward_pass_are_noticed(sim):
    policy = Policy()
    trajectory = sim.rollout_policy(policy, STEPS, **start(), memory=Memory(segment=4))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.data.mul_(1.001)  # as an optimizer's step; .data, which torch does not count
    with pytest.raises(StaleInputError, match="answered otherwise in the backward pass.*step 4"):
        loss_of(trajectory).backward()


def test_a_policy_with_a_memory_is_noticed_or_asked_only_once(sim):
    def remembering():
        before = []

        def policy(state):
            before.append(0.5 * torch.cat([state.qd, state.q], -1)[:, 1:3] + (0.3 * before[-1] if before else 0.0))
            return before[-1]

        return policy

    initial = start(requires_grad=True)
    with pytest.raises(StaleInputError, match="a state of its own"):
        loss_of(sim.rollout_policy(remembering(), STEPS, **initial, memory=Memory(segment=4))).backward()
    found = torch.autograd.grad(
        loss_of(sim.rollout_policy(remembering(), STEPS, **initial, memory=Memory(segment=STEPS))), initial["q"]
    )
    expected = torch.autograd.grad(loss_of(by_hand(sim, remembering(), initial)), initial["q"])
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


def test_a_policy_may_write_all_its_answers_to_one_tensor(sim):
    room = torch.zeros(2, 2, dtype=torch.float64)

    def policy(state):
        return room.copy_(-0.5 * state.qd)

    with torch.no_grad():
        found = sim.rollout_policy(policy, STEPS, **start(), delay=3)
        expected = sim.rollout_policy(lambda state: -0.5 * state.qd, STEPS, **start(), delay=3)
    assert torch.equal(found.q, expected.q)


def test_dropout_is_repeated_and_passes(sim):
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    trajectory = sim.rollout_policy(
        lambda s: net(torch.cat([s.q, s.qd], -1)), STEPS, **start(), memory=Memory(segment=4)
    )
    loss_of(trajectory).backward()
    assert net[0].weight.grad.abs().max() > 0


@pytest.mark.parametrize("form", ["function", "partial", "method", "module"])
def test_a_stock_single_precision_network_drives_the_simulator(sim, form):
    torch.manual_seed(2)
    net = torch.nn.Linear(4, 2)
    double = torch.nn.Linear(4, 2, dtype=torch.float64)
    double.load_state_dict({name: value.double() for name, value in net.state_dict().items()})

    def answer(network, state):
        return network(torch.cat([state.q, state.qd], -1))

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = net

        def forward(self, state):
            return answer(self.network, state)

    class Holder:
        def __init__(self):
            self.network = net

        def act(self, state):
            return answer(self.network, state)

    policy = {
        "function": lambda state: answer(net, state),
        "partial": partial(answer, net),
        "method": Holder().act,
        "module": Module(),
    }[form]
    loss = loss_of(sim.rollout_policy(policy, STEPS, **start(), memory=Memory(segment=4)))
    expected = loss_of(
        sim.rollout_policy(lambda state: answer(double, state), STEPS, **start(), memory=Memory(segment=4))
    )
    gradient = torch.autograd.grad(loss, net.weight)[0]
    assert gradient.dtype == torch.float32
    torch.testing.assert_close(gradient.double(), torch.autograd.grad(expected, double.weight)[0], rtol=1e-4, atol=1e-4)


def test_the_precision_of_what_a_policy_sees_can_be_chosen(sim):
    seen = []

    def policy(state):
        seen.append(state.q.dtype)
        return 0.1 * state.qd

    trajectory = sim.rollout_policy(policy, 1, **start(), precision=torch.float32)
    sim.rollout_policy(policy, 1, **start())
    assert seen == [torch.float32, torch.float64] and trajectory.q.dtype == torch.float64
