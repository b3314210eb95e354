"""Training through short windows: targets and losses against the same written out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from simulator_support import arm
from warpsim.core.errors import InputError
from warpsim.learn import SHAC, Critic, Normalizer, TrainingLog, read_log
from warpsim.learn.returns import blended_returns, step_weights
from warpsim.learn.world_gradients import WorldGradients
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
    period = HOLD * sim.timestep
    return SHAC(
        sim,
        policy,
        cost,
        start,
        **{
            "window": WINDOW * period,
            "period": period,
            "discount": DISCOUNT,
            "episode": 9 * period,
            "normalize": None,
            **options,
        },
    )


def test_returns_are_those_of_their_definition():
    generator = torch.Generator().manual_seed(0)
    costs, values = (torch.randn(6, 5, dtype=torch.float64, generator=generator) for _ in range(2))
    failed, ended = (torch.zeros(6, 5, dtype=torch.bool) for _ in range(2))
    failed[3, 2] = True  # world 2 fails in the state its fourth step reaches, and begins anew
    ended[3, 2] = True
    ended[1, 4] = True  # world 4 begins anew after its second step, without having failed
    for blend in (0.0, 0.7, 1.0):
        found = blended_returns(costs, values, failed, ended, 0.9, blend)
        for world in range(5):
            for t in range(6):
                end = next((k + 1 for k in range(t, 6) if ended[k, world]), 6)
                # n-step returns, weighted (1 − λ)·λⁿ⁻¹, the last one with what remains
                returns = []
                for n in range(1, end - t + 1):
                    rest = 0.0 if failed[t + n - 1, world] else values[t + n - 1, world]
                    returns.append(sum(0.9**k * costs[t + k, world] for k in range(n)) + 0.9**n * rest)
                expected = sum((1 - blend) * blend**k * value for k, value in enumerate(returns[:-1]))
                expected = expected + blend ** (len(returns) - 1) * returns[-1]
                torch.testing.assert_close(found[t, world], expected, rtol=1e-12, atol=1e-12)


def test_steps_count_from_where_a_world_began():
    ended = torch.zeros(4, 2, dtype=torch.bool)
    ended[1, 1] = True
    expected = torch.tensor([[1.0, 1.0], [0.9, 0.9], [0.81, 1.0], [0.729, 0.9]], dtype=torch.float64)
    torch.testing.assert_close(step_weights(ended, 0.9), expected)


def test_moments_are_those_of_all_batches_and_then_stay():
    generator = torch.Generator().manual_seed(0)
    batches = [3 * torch.randn(50, 2, dtype=torch.float64, generator=generator) + k for k in range(4)]
    made = Normalizer(2, freeze=3)
    for batch in batches:
        made.see(batch)
    seen = torch.cat(batches[:3])
    torch.testing.assert_close(made.mean, seen.mean(0))
    torch.testing.assert_close(made.deviation, seen.std(0, correction=0))
    assert made.frozen


def test_a_critic_learns_a_function_and_its_slow_copy_follows():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(256, 2, dtype=torch.float64, generator=generator) * 2 - 1
    y = torch.sin(2 * x[:, 0]) + x[:, 1] ** 2
    critic = Critic(2, hidden=(32, 32), follow=0.25)
    before = [p.clone() for p in critic.slow.parameters()]
    first = critic.fit(x, y)
    for old, slow, fitted in zip(before, critic.slow.parameters(), critic.network.parameters(), strict=True):
        torch.testing.assert_close(slow, 0.75 * old + 0.25 * fitted, rtol=1e-5, atol=1e-7)
    for _ in range(60):
        last = critic.fit(x, y)
    assert last < 0.02 < 0.3 < first
    assert (critic(x) - y).square().mean() < 0.02


def test_an_update_goes_down_the_gradient_of_the_loss_written_by_hand(sim):
    made = trainer(sim)
    state, loss, policy = sim.reset(**start(0)), 0.0, made.policy
    for k in range(WINDOW):
        control = policy(state)
        for _ in range(HOLD):
            state = sim.step(control)
        loss = loss + DISCOUNT**k * cost(state, control)
    loss = (loss + DISCOUNT**WINDOW * made.critic(policy.observe(state.q, state.qd))).mean()
    sim.reset()
    expected = torch.autograd.grad(loss, list(policy.parameters()))
    seen = made.update()
    assert seen.loss == pytest.approx(float(loss.detach()), rel=1e-6)
    norm = torch.cat([g.flatten() for g in expected]).norm()
    assert seen.gradient_norm == pytest.approx(float(norm), rel=1e-6)
    for parameter, gradient in zip(policy.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient * min(1.0, 1.0 / float(norm)), rtol=1e-5, atol=1e-9)


def test_the_gradient_is_the_slope_of_the_loss_with_all_that_a_window_has(sim):
    """Central differences where worlds fail and begin anew within the window, and what is seen is normalized."""

    def fail(state):
        found = torch.zeros(state.q.shape[:2], dtype=torch.bool)
        found[0, 2] = True  # at the first control of each part
        return found

    period = HOLD * sim.timestep
    made = trainer(sim, failed=fail, window=4 * period, parts=2, episode=9 * period, normalize=2)
    made.train(2)
    before, parameters = made.worlds.state_dict(), list(made.policy.parameters())

    def loss() -> torch.Tensor:
        made.worlds.load_state_dict(before)
        return made._window(2)[1]

    generator = torch.Generator().manual_seed(3)
    way = [torch.randn(p.shape, dtype=p.dtype, generator=generator) for p in parameters]
    slope = sum((g * d).sum() for g, d in zip(torch.autograd.grad(loss(), parameters), way, strict=True))

    def beside(reach: float) -> float:
        with torch.no_grad():
            for parameter, direction in zip(parameters, way, strict=True):
                parameter += reach * direction
            found = float(loss())
            for parameter, direction in zip(parameters, way, strict=True):
                parameter -= reach * direction
        return found

    # 8e-5 apart at this reach, 8e-3 at ten times as much; below 3e-4 the critic's single precision shows
    assert float(slope) == pytest.approx((beside(1e-3) - beside(-1e-3)) / 2e-3, rel=3e-4)


def test_training_is_repeatable_and_lowers_the_cost(sim):
    def judged(policy) -> float:
        """Mean cost along windows from starts it has not seen."""
        with torch.no_grad():
            motion = sim.rollout_policy(policy, 12, **start(1000), hold=HOLD)
            return float(cost(motion, policy(motion))[::HOLD].mean())

    runs = [trainer(sim) for _ in range(2)]
    before = judged(runs[0].policy)
    histories = [run.train(30) for run in runs]
    assert [replace(h, seconds=0) for h in histories[0]] == [replace(h, seconds=0) for h in histories[1]]
    for one, other in zip(runs[0].policy.parameters(), runs[1].policy.parameters(), strict=True):
        assert torch.equal(one, other)
    assert judged(runs[0].policy) < 0.9 * before


def test_failed_worlds_cost_nothing_more_and_begin_anew(sim):
    asked = []

    def fail(state):
        asked.append(state.q)
        found = torch.zeros(state.q.shape[:2], dtype=torch.bool)
        found[1, 2] = True
        return found

    made = trainer(sim, failed=fail, episode=1000)
    made.worlds.age.zero_()
    asked.clear()
    with torch.no_grad():
        motion = sim.rollout_policy(made.policy, WINDOW * HOLD, **start(0), hold=HOLD)
    seen = made.update()
    assert seen.failed == 1 and asked[0].shape[:2] == (WINDOW, 4)
    fresh = start(1)["q"]
    assert torch.equal(made.worlds.state["q"][2], fresh[2])
    for world in (0, 1, 3):
        assert torch.equal(made.worlds.state["q"][world], motion.q[-1, world])
    # the policy has changed since, so of the cost only the states' part is known
    rows = motion.q[HOLD::HOLD].square().sum(-1) + 0.1 * motion.qd[HOLD::HOLD].square().sum(-1)
    counted = torch.ones(WINDOW, 4)
    counted[2, 2] = 0.0
    least = float((rows * counted).sum() / counted.sum())
    assert least <= seen.cost <= least + 0.01 * 2 * 4.0


def test_the_value_of_the_state_that_failed_counts_and_is_taught(sim):
    def fail(state):
        found = torch.zeros(state.q.shape[:2], dtype=torch.bool)
        found[1, 2] = True
        return found

    made = trainer(sim, failed=fail, episode=1000)
    window = made.worlds.window(made.policy, made._observe, 0)
    by_hand = 0.0
    for world in range(4):
        frames = 2 if world == 2 else WINDOW
        by_hand += sum(DISCOUNT**t * float(window.costs[t, world].detach()) for t in range(frames))
        by_hand += DISCOUNT**frames * float(made.critic(window.reached[frames - 1, world]))
    assert float(made._loss(window).detach()) == pytest.approx(by_hand / 4, rel=1e-7)  # critics are of single precision
    assert abs(float(made.critic(window.reached[1, 2]))) > 1e-3  # so that leaving it out shows
    given = []
    made.critic.fit = lambda features, targets: given.append((features, targets)) or 0.0
    made._fit(window)
    features, targets = given[0]
    assert torch.equal(features[-1], window.reached[1, 2]) and targets[-1] == 0.0
    assert len(features) == int(window.counted.sum()) + 1


def test_worlds_that_failed_go_back_by_two_windows(sim):
    falling = [False]

    def fail(state):
        found = torch.zeros(state.q.shape[:2], dtype=torch.bool)
        found[1, 2:] = falling[0]
        return found

    made = trainer(sim, failed=fail, episode=5 * WINDOW * HOLD * sim.timestep, retry=1.0)
    made.worlds.age = torch.tensor([0, 0, 0, WINDOW])  # world 3's episode is over when it fails for the second time
    begun = []
    for number in range(4):
        falling[0] = number >= 2
        begun.append(made.worlds.state["q"].clone())
        made.worlds.window(made.policy, made._observe, number)
    for world in (0, 1):
        assert torch.equal(made.worlds.age[world], torch.tensor(4 * WINDOW))
    assert torch.equal(begun[3][2:], begun[0][2:]) and not torch.equal(begun[3][:2], begun[0][:2])
    assert int(made.worlds.age[2]) == 4 * WINDOW  # the episode goes on, so that nothing is tried forever
    assert torch.equal(made.worlds.state["q"][2], begun[0][2])  # what it was given back counts as where it was
    assert int(made.worlds.age[3]) == 0 and not torch.equal(made.worlds.state["q"][3], begun[0][3])


def test_warm_up_fits_the_critic_alone(sim):
    made = trainer(sim, warm_up=2)
    before = [parameter.clone() for parameter in made.policy.parameters()]
    values = [parameter.clone() for parameter in made.critic.network.parameters()]
    made.train(2)
    for old, new in zip(before, made.policy.parameters(), strict=True):
        assert torch.equal(old, new)
    assert not torch.equal(values[0], next(made.critic.network.parameters()))
    made.update()
    assert not torch.equal(before[0], next(made.policy.parameters()))


def test_gradients_are_bounded_world_by_world():
    gradient = torch.tensor([[3.0, 4.0], [0.0, 1.0], [600.0, 800.0], [float("nan"), 1.0], [0.0, 2.0]]).double()
    spread = WorldGradients(5, largest=2.0)
    found = spread.gather(gradient)
    # norms 5, 1, 1000, 2: the median of those that are finite is 2 (the lower of two), the bound 4
    torch.testing.assert_close(found, torch.tensor([3.0 * 0.8 + 2.4, 4.0 * 0.8 + 1 + 3.2 + 2], dtype=torch.float64))
    assert (spread.dropped, spread.clipped, spread.median) == (1, 0.4, 2.0)
    torch.testing.assert_close(WorldGradients(5, None).gather(gradient), torch.tensor([603.0, 807.0]).double())


def test_a_wide_bound_changes_nothing_and_a_tight_one_much(sim):
    exact, loose, tight = (trainer(sim, world_clip=clip).update().gradient_norm for clip in (None, 1e6, 1e-3))
    assert loose == exact
    assert tight < 0.01 * exact


def test_worlds_begin_anew_within_a_window(sim):
    def fail(state):
        found = torch.zeros(state.q.shape[:2], dtype=torch.bool)
        found[0, 2] = True
        return found

    made = trainer(sim, failed=fail, episode=1000, parts=3)
    made.worlds.age.zero_()
    window = made.worlds.window(made.policy, made._observe, 0)
    assert window.ended[:, 2].all() and not window.ended[:, [0, 1, 3]].any()
    assert window.counted.all()  # world 2 begins anew after each part, so that nothing is lost
    assert torch.equal(window.before[1, 2], made.policy.observe(start(1)["q"], start(1)["qd"])[2])
    assert torch.equal(window.before[1, 0], window.reached[0, 0])
    assert torch.equal(made.worlds.state["q"][2], start(3)["q"][2])


def test_what_a_policy_sees_is_normalized_and_told_to_kernels(sim):
    made = trainer(sim, normalize=3)
    made.train(4)
    assert made.normalizer.frozen
    assert torch.equal(made.policy.mean, made.normalizer.mean)
    assert torch.equal(made.average.deviation, made.normalizer.deviation)
    with torch.no_grad():
        rows = [sim.rollout_policy(made.average, 6, start=start(5), hold=HOLD, in_kernels=k).q for k in (True, False)]
    torch.testing.assert_close(rows[0], rows[1], rtol=1e-12, atol=1e-12)


def test_a_world_that_is_no_longer_finite_is_dropped_and_counted(sim):
    def bad(number):
        made = start(number)
        if number == 0:
            made["qd"][1] = 1e200
        return made

    made = trainer(sim)
    whole = SHAC(sim, made.policy, cost, bad, window=6 * sim.timestep, period=2 * sim.timestep, normalize=None)
    seen = whole.update()
    assert seen.dropped == 1
    assert all(torch.isfinite(value).all() for value in whole.worlds.state.values())


def test_a_training_that_goes_on_from_a_checkpoint_gives_the_same_bits(sim, tmp_path):
    options = {"normalize": 5, "evaluate_every": 2, "evaluate_seconds": 0.1, "patience": 1, "world_clip": 3.0}
    options |= {"retry": 0.5, "failed": lambda state: state.q[..., 0].abs() > 1.5, "episode": 0.08}
    whole, first, second = (trainer(sim, **options) for _ in range(3))
    whole.train(7)
    first.train(3)
    first.save(tmp_path / "checkpoint.pt")
    second.load(tmp_path / "checkpoint.pt")
    second.train(4)
    for name, value in whole.policy.state_dict().items():
        assert torch.equal(value, second.policy.state_dict()[name])
    for name, value in whole.best_policy().state_dict().items():
        assert torch.equal(value, second.best_policy().state_dict()[name])
    assert [replace(h, seconds=0) for h in whole.history] == [replace(h, seconds=0) for h in second.history]


def test_the_best_policy_is_the_one_that_cost_least(sim):
    made = trainer(sim, evaluate_every=1, evaluate_seconds=0.2, rate=0.05)
    made.train(8)
    scores = [h.score for h in made.history]
    assert made._judge(made.best_policy()).cost == min(scores)
    assert len(set(scores)) > 1


def test_any_torch_module_is_trained(sim):
    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 2, dtype=torch.float64)
            torch.nn.init.zeros_(self.layer.weight)
            torch.nn.init.zeros_(self.layer.bias)

        def forward(self, state):
            return self.layer(torch.cat([state.q, state.qd], -1))

    period = HOLD * sim.timestep
    made = SHAC(
        sim, Linear(), cost, start, observe=lambda s: torch.cat([s.q, s.qd], -1), window=3 * period, period=period
    )
    made.train(2)
    assert made.policy.layer.weight.abs().sum() > 0
    with pytest.raises(InputError, match="give observe="):
        SHAC(sim, Linear(), cost, start, window=3 * period, period=period)


def test_a_log_is_read_as_it_was_written(sim, tmp_path):
    made = trainer(sim, evaluate_every=2, evaluate_seconds=0.1)
    made.train(4, until=TrainingLog(tmp_path))
    assert read_log(tmp_path) == made.history
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 5
    TrainingLog(tmp_path, keep=2)
    assert read_log(tmp_path) == made.history[:2]


def test_bad_choices_are_named(sim):
    with pytest.raises(InputError, match="is shorter than a window"):
        trainer(sim, episode=0.001)
    with pytest.raises(InputError, match="not a whole number of time steps"):
        trainer(sim, period=1.4 * sim.timestep)
    with pytest.raises(InputError, match="cannot be cut into parts=2"):
        trainer(sim, parts=2)
    with pytest.raises(InputError, match="how long"):
        trainer(sim).train()
    times = {"window": 3 * sim.timestep, "period": sim.timestep}
    with pytest.raises(InputError, match=r"the cost has shape \(3, 4, 2\); needed: \(3, 4\)"):
        SHAC(sim, sim.network_policy(), lambda state, control: state.q, start, **times).update()
    with pytest.raises(InputError, match="the cost of update 0 is nan"):
        SHAC(sim, sim.network_policy(), lambda s, u: s.q[..., 0] * float("nan"), start, **times).update()
