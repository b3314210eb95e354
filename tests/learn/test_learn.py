"""Training through short windows: targets and losses against the same written out by hand."""

from __future__ import annotations

import pytest
import torch

from simulator_support import arm
from warpsim.core.errors import InputError
from warpsim.learn import SHAC, Critic
from warpsim.learn.critic import blended_returns
from warpsim.sim.simulator import Simulator

WINDOW, HOLD, DISCOUNT = 3, 2, 0.9


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of torch cost more than they save on tensors this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def sim() -> Simulator:
    scene = arm()
    scene.actuators[1].dynamics = "none"  # no activation, so that q and qd are the whole state
    return Simulator(scene, worlds=4, outputs=())


def start(number: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    return {name: torch.randn(4, 2, dtype=torch.float64, generator=generator) for name in ("q", "qd")}


def cost(state, control) -> torch.Tensor:
    return state.q.square().sum(-1) + 0.1 * state.qd.square().sum(-1) + 0.01 * control.square().sum(-1)


def trainer(sim: Simulator, **options) -> SHAC:
    policy = sim.network_policy(hidden=(8,), seed=1)
    return SHAC(
        sim, policy, cost, start, **{"window": WINDOW, "hold": HOLD, "discount": DISCOUNT, "episode": 9, **options}
    )


def test_returns_are_those_of_their_definition():
    generator = torch.Generator().manual_seed(0)
    costs, values = (torch.randn(n, 5, dtype=torch.float64, generator=generator) for n in (6, 7))
    alive = torch.ones(7, 5, dtype=torch.float64)
    alive[4:, 2] = 0.0  # world 2 fails in the state its fourth step reaches
    for blend in (0.0, 0.7, 1.0):
        found = blended_returns(costs, values, alive, 0.9, blend)
        for world in range(5):
            end = 4 if world == 2 else 6
            for t in range(end):
                # n-step returns, weighted (1 − λ)·λⁿ⁻¹, the last one with what remains
                returns = []
                for n in range(1, end - t + 1):
                    rest = 0.0 if world == 2 and t + n == end else values[t + n, world]
                    returns.append(sum(0.9**k * costs[t + k, world] for k in range(n)) + 0.9**n * rest)
                expected = sum((1 - blend) * blend**k * value for k, value in enumerate(returns[:-1]))
                expected = expected + blend ** (len(returns) - 1) * returns[-1]
                torch.testing.assert_close(found[t, world], expected, rtol=1e-12, atol=1e-12)


def test_a_critic_learns_a_function_and_its_slow_copy_follows():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(256, 2, dtype=torch.float64, generator=generator) * 2 - 1
    y = torch.sin(2 * x[:, 0]) + x[:, 1] ** 2
    critic = Critic(2, hidden=(32, 32), follow=0.25)
    before = [p.clone() for p in critic.slow.parameters()]
    first = critic.fit(x, y)
    for old, slow, fitted in zip(before, critic.slow.parameters(), critic.network.parameters(), strict=True):
        torch.testing.assert_close(slow, 0.75 * old + 0.25 * fitted)
    for _ in range(60):
        last = critic.fit(x, y)
    assert last < 0.02 < 0.3 < first
    assert (critic(x) - y).square().mean() < 0.02


def test_an_update_goes_down_the_gradient_of_the_loss_written_by_hand(sim):
    made = trainer(sim)
    state, loss, policy = sim.reset(**start(0)), 0.0, made._policy
    for k in range(WINDOW):
        control = policy(state)
        for _ in range(HOLD):
            state = sim.step(control)
        loss = loss + DISCOUNT**k * cost(state, control)
    loss = (loss + DISCOUNT**WINDOW * made.critic(policy.observe(state.q, state.qd))).mean()
    sim.reset()
    expected = torch.autograd.grad(loss, list(policy.parameters()))
    seen = made.update()
    assert seen.loss == pytest.approx(float(loss.detach()), rel=1e-12)
    norm = torch.cat([g.flatten() for g in expected]).norm()
    assert seen.gradient_norm == pytest.approx(float(norm), rel=1e-10)
    for parameter, gradient in zip(policy.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient * min(1.0, 1.0 / float(norm)), rtol=1e-5, atol=1e-9)


def test_training_is_repeatable_and_lowers_the_cost(sim):
    def judged(policy) -> float:
        """Mean cost along windows from starts it has not seen."""
        with torch.no_grad():
            motion = sim.rollout_policy(policy, 12, **start(1000), hold=HOLD)
            return float(cost(motion, policy(motion))[::HOLD].mean())

    runs = [trainer(sim) for _ in range(2)]
    before = judged(runs[0]._policy)
    histories = [run.train(30) for run in runs]
    assert histories[0] == histories[1] == runs[0].history
    for one, other in zip(runs[0]._policy.parameters(), runs[1]._policy.parameters(), strict=True):
        assert torch.equal(one, other)
    assert judged(runs[0]._policy) < 0.9 * before


def test_failed_worlds_cost_nothing_more_and_begin_anew(sim):
    asked = []

    def fail(state):
        asked.append(state.q)
        found = torch.zeros(state.q.shape[:2], dtype=torch.bool)
        found[1, 2] = True
        return found

    made = trainer(sim, failed=fail, episode=1000)
    made._age.zero_()
    with torch.no_grad():
        motion = sim.rollout_policy(made._policy, WINDOW * HOLD, **start(0), hold=HOLD)
    seen = made.update()
    assert seen.failed == 1 and asked[0].shape[:2] == (WINDOW, 4)
    fresh = start(1)["q"]
    assert torch.equal(made._state["q"][2], fresh[2])
    for world in (0, 1, 3):
        assert torch.equal(made._state["q"][world], motion.q[-1, world])
    # the policy has changed since, so of the cost only the states' part is known
    rows = motion.q[HOLD::HOLD].square().sum(-1) + 0.1 * motion.qd[HOLD::HOLD].square().sum(-1)
    counted = torch.ones(WINDOW, 4)
    counted[2, 2] = 0.0
    least = float((rows * counted).sum() / counted.sum())
    assert least <= seen.cost <= least + 0.01 * 2 * 4.0


def test_warm_up_fits_the_critic_alone(sim):
    made = trainer(sim, warm_up=2, adjoint_clip=1e6)
    before = [parameter.clone() for parameter in made._policy.parameters()]
    values = [parameter.clone() for parameter in made.critic.network.parameters()]
    made.train(2)
    for old, new in zip(before, made._policy.parameters(), strict=True):
        assert torch.equal(old, new)
    assert not torch.equal(values[0], next(made.critic.network.parameters()))
    made.update()
    assert not torch.equal(before[0], next(made._policy.parameters()))


def test_a_clip_of_adjoints_bounds_the_gradient(sim):
    exact, loose, tight = (trainer(sim, adjoint_clip=clip).update().gradient_norm for clip in (None, 1e6, 1e-3))
    assert loose == pytest.approx(exact, rel=1e-9)
    assert tight < 0.9 * exact


def test_bad_choices_are_named(sim):
    with pytest.raises(InputError, match="episode=2 no less than the window"):
        trainer(sim, episode=2)
    with pytest.raises(InputError, match=r"the cost has shape \(3, 4, 2\); needed: \(3, 4\)"):
        SHAC(sim, sim.network_policy(), lambda state, control: state.q, start, window=3).update()
    with pytest.raises(InputError, match="the cost of update 0 is nan"):
        SHAC(sim, sim.network_policy(), lambda s, u: s.q[..., 0] * float("nan"), start, window=3).update()
