"""`SHAC`: trains a policy through short windows of physics, with a learned value for all that comes after.

The gradient of a long closed loop is exact and useless: it grows with the horizon and points along the ripples of a
chaotic loss. Here each update differentiates a window of a second or less, in many worlds that go on from window to
window and begin anew at different times; a critic, fitted to what the windows cost, stands for the rest (short-horizon
actor-critic: Xu et al., Accelerated Policy Learning with Parallel Differentiable Simulation, ICLR 2022).
"""

from __future__ import annotations

import copy
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from warpsim.core.errors import InputError, UnconvergedError
from warpsim.core.files import replacing
from warpsim.learn.critic import Critic
from warpsim.learn.iteration import Iteration
from warpsim.learn.judge import Judge, Score
from warpsim.learn.normalizer import Normalizer
from warpsim.learn.returns import blended_returns, step_weights
from warpsim.learn.windows import Cost, Observe, Perturb, Starts, Timing, Window, Worlds, lost_world
from warpsim.learn.world_gradients import bounds_of
from warpsim.parallel.ranks import by_first
from warpsim.sim.network_policy import NetworkPolicy
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.tape.diagnostics import NonFiniteError

FORMAT = "warpsim training 1"
"""Of a checkpoint; a command replaces its own files, and no others."""


class SHAC:
    """Worlds, a policy, and a critic that sees what the policy sees.

    Attributes:
        policy: Is trained.
        average: A copy whose weights follow the policy's slowly; what is evaluated and kept.
        best: Weights of the copy that cost least in an evaluation; None before the first.
        critic: The value of states.
        normalizer: Mean and deviation of what they see; None: they see it as it is.
        worlds: The worlds it is trained in.
        history: All updates so far.
    """

    def __init__(
        self,
        sim: Simulator,
        policy: torch.nn.Module,
        cost: Cost,
        starts: Starts,
        *,
        failed: Callable[[Observed], torch.Tensor] | None = None,
        perturb: Perturb | None = None,
        observe: Observe | None = None,
        window: float = 0.32,
        period: float = 0.02,
        parts: int = 1,
        episode: float = 10.0,
        discount: float = 0.99,
        blend: float = 0.95,
        rate: float = 2e-3,
        rate_decay: float | None = None,
        momentum: float = 0.9,
        clip: float = 1.0,
        world_clip: float | None = None,
        normalize: int | None = 400,
        average: float = 0.98,
        critic: Critic | None = None,
        warm_up: int = 0,
        retry: float = 0.0,
        evaluate_every: int | None = None,
        evaluate_seconds: float = 5.0,
        patience: int | None = None,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        """Draws the first states.

        Args:
            sim: Whose worlds are used, with the parameters in force there, which may differ from world to world.
            policy: Is trained, from the weights it has: a `NetworkPolicy`, which runs in kernels, or any torch module
                from observed states to controls.
            cost: Of states and controls, one frame per control; see `Cost`.
            starts: Where worlds begin that have failed or gone on for an episode.
            failed: Which states (n, W, …) end an episode. What comes after costs nothing, so where failing is possible
                costs should be below zero while all goes well.
            perturb: Changes the states with which a window begins, e.g. kicks the joints; see `Perturb`.
            observe: What the critic sees; None: what a `NetworkPolicy` sees.
            window: What is differentiated at a time, s.
            period: From control to control, s.
            parts: Into how many parts a window is cut, after each of which worlds that have failed begin anew.
            episode: After which a world begins anew, s.
            discount: What a cost one control later counts.
            blend: λ of the critic's targets.
            rate: Adam's learning rate for the policy at the first update.
            rate_decay: Updates n₀ of the rates' fall with 1/√(1 + n/n₀), the critic's too; None: they do not fall.
            momentum: Adam's first decay rate.
            clip: Largest norm of the policy's gradient.
            world_clip: Largest norm of the gradient of a single world, in multiples of the median world's; keeps a few
                worlds that tumble from drowning the others. None: any.
            normalize: Windows in which mean and deviation of what is seen are learned; None: it is seen as it is.
            average: Share of itself that the averaged policy keeps at each update.
            critic: None: one with its defaults.
            warm_up: Updates at the beginning that fit the critic alone, for policies that already do something of use.
            retry: Share of the worlds that failed which go back by two windows instead of to a start; see `Past`.
            evaluate_every: Updates from one evaluation of the averaged policy to the next; None: none.
            evaluate_seconds: Length of an evaluation, s.
            patience: Evaluations without a better one after which both learning rates are halved; None: never.
            threads: CPU threads that share the worlds.
            seed: Of the critic, and of the moments at which worlds first begin anew.
        """
        _check_shares(discount, blend, average)
        timing = Timing.of(sim.timestep, period=period, window=window, parts=parts, episode=episode)
        self._discount, self._blend, self._clip, self._warm_up = discount, blend, clip, warm_up
        self._evaluate_every, self._patience, self._averaging = evaluate_every, patience, average
        self.policy, self._rate_decay = policy, rate_decay
        self._observe = _observer(policy) if observe is None else observe
        self._gradients = bounds_of(policy, sim.worlds, world_clip)
        self.worlds = Worlds(sim, timing, cost, starts, failed, perturb, threads=threads, seed=seed, retry=retry)
        self._judge = Judge(sim, cost, starts, failed, hold=timing.hold, seconds=evaluate_seconds, threads=threads)
        features = self._feature_count(sim)
        self.normalizer = None if normalize is None else Normalizer(features, freeze=normalize, device=sim.device)
        self.critic = Critic(features, seed=seed, device=sim.device) if critic is None else critic
        self._begin(rate, momentum)

    def _begin(self, rate: float, momentum: float) -> None:
        """Nothing is learned yet."""
        self._optimizer = torch.optim.Adam(self.policy.parameters(), lr=rate, betas=(momentum, 0.95), fused=True)
        self._rates = (rate, self.critic.optimizer.param_groups[0]["lr"])
        self.average = copy.deepcopy(self.policy).requires_grad_(False)
        self.best: dict[str, torch.Tensor] | None = None
        self.history: list[Iteration] = []
        self._least, self._since_best, self._halved = float("inf"), 0, 0
        self._used = 0.0

    def train(
        self,
        updates: int | None = None,
        *,
        seconds: float | None = None,
        progress: bool = False,
        until: Callable[[Iteration], bool] | None = None,
    ) -> list[Iteration]:
        """Updates the policy; how often changes nothing but the end.

        Args:
            updates: How many; None: as long as `seconds` says.
            seconds: Processor time after which no further update begins, s; None: any.
            progress: Show a bar.
            until: Asked after each update; True ends the training.

        Returns:
            What was seen at each.
        """
        if updates is None and seconds is None and until is None:
            raise InputError("how long? give updates=, seconds= or until=")
        first, began = len(self.history), time.process_time()
        timed = updates is None and seconds is not None
        total, unit = (int(seconds or 0), "s") if timed else (updates, "it")
        with tqdm(total=total, unit=unit, desc="training", disable=not progress) as bar:
            while updates is None or len(self.history) - first < updates:
                made = self.update()
                bar.update(min(int(time.process_time() - began), bar.total) - bar.n if timed else 1)
                shown: dict[str, Any] = {"update": made.number} if timed else {}
                shown |= {} if made.score is None else {"score": f"{made.score:.3f}"}
                bar.set_postfix(cost=f"{made.cost:.3f}", failed=made.failed, **shown, refresh=False)
                if until is not None and until(made):
                    break
                if seconds is not None and by_first(lambda: time.process_time() - began, "the clock") >= seconds:
                    break
        return self.history[first:]

    def update(self) -> Iteration:
        """One window: moves the policy along its gradient, fits the critic, lets the worlds go on, and evaluates."""
        began, number = time.process_time(), len(self.history)
        self._set_rates(number)
        window, loss = self._window(number)
        norm = self._move(loss, number)
        error = self._fit(window)
        with torch.no_grad():
            for slow, fast in zip(self.average.parameters(), self.policy.parameters(), strict=True):
                slow.lerp_(fast, 1.0 - self._averaging)
        if self.normalizer is not None:
            self.normalizer.see(window.before[window.counted])
            self._show_moments()
        score = None
        if self._evaluate_every is not None and (number + 1) % self._evaluate_every == 0:
            score = self.evaluate().cost
        counted = window.counted
        self._used += time.process_time() - began
        self.history.append(
            Iteration(
                number,
                cost=float(window.costs.detach().sum() / counted.sum()),
                loss=float(loss.detach()),
                gradient_norm=norm,
                critic_error=error,
                failed=int((counted & window.failed).sum()),
                dropped=self.worlds.dropped,
                score=score,
                seconds=self._used,
            )
        )
        return self.history[-1]

    def evaluate(self) -> Score:
        """Evaluates the averaged policy, keeps it if none was better, and lowers the rates if none was for long."""
        score = self._judge(self.average)
        self._since_best += 1
        if score.cost < self._least:
            self._least, self._since_best = score.cost, 0
            self.best = {name: value.clone() for name, value in self.average.state_dict().items()}
        elif self._patience is not None and self._since_best >= self._patience:
            self._since_best = 0
            self._halved += 1
        return score

    def best_policy(self) -> torch.nn.Module:
        """A copy of the averaged policy that cost least in an evaluation, or of the last one if there was none."""
        found = copy.deepcopy(self.average)
        if self.best is not None:
            found.load_state_dict(self.best)
        return found

    def save(self, path: str | PathLike[str]) -> None:
        """Writes all that the training needs to go on as if it had not been interrupted."""
        with replacing(path) as temporary:
            torch.save({"format": FORMAT, **self.state_dict()}, temporary)

    def load(self, path: str | PathLike[str]) -> None:
        """Goes on from what `save` wrote; this trainer must have been made with the same arguments.

        On several ranks the first one reads the file; the others need not see it.
        """
        content = by_first(lambda: Path(path).read_bytes(), "the checkpoint")
        self.load_state_dict(torch.load(io.BytesIO(content), weights_only=True))

    def state_dict(self) -> dict[str, Any]:
        """Numbers, tensors and lists of them."""
        return {
            "policy": self.policy.state_dict(),
            "average": self.average.state_dict(),
            "best": self.best,
            "least": self._least,
            "since_best": self._since_best,
            "halved": self._halved,
            "optimizer": self._optimizer.state_dict(),
            "critic": self.critic.state_dict(),
            "normalizer": None if self.normalizer is None else self.normalizer.state_dict(),
            "worlds": self.worlds.state_dict(),
            "history": [vars(made) for made in self.history],
            "seconds": self._used,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        self.policy.load_state_dict(saved["policy"])
        self.average.load_state_dict(saved["average"])
        self.best, self._least, self._since_best = saved["best"], saved["least"], saved["since_best"]
        self._halved = saved["halved"]
        self._optimizer.load_state_dict(saved["optimizer"])
        self.critic.load_state_dict(saved["critic"])
        if self.normalizer is not None:
            self.normalizer.load_state_dict(saved["normalizer"])
        self.worlds.load_state_dict(saved["worlds"])
        self.history = [Iteration(**made) for made in saved["history"]]
        self._used = saved["seconds"]

    @contextmanager
    def _spread_over_worlds(self) -> Iterator[None]:
        """While open, rollouts of a policy in kernels have gradients world by world."""
        if not isinstance(self.policy, NetworkPolicy):
            yield
            return
        kept, self.policy.each_world = self.policy.each_world, self._gradients
        try:
            yield
        finally:
            self.policy.each_world = kept

    def _set_rates(self, number: int) -> None:
        fallen = 0.5**self._halved
        if self._rate_decay is not None:
            fallen /= (1.0 + number / self._rate_decay) ** 0.5
        for optimizer, rate in zip((self._optimizer, self.critic.optimizer), self._rates, strict=True):
            optimizer.param_groups[0]["lr"] = fallen * rate

    def _feature_count(self, sim: Simulator) -> int:
        if isinstance(self.policy, NetworkPolicy):
            return len(self.policy.features)
        with torch.no_grad():
            return self._observe(sim.rollout(steps=1, start=self.worlds.state)).shape[-1]

    def _window(self, number: int) -> tuple[Window, torch.Tensor]:
        """A window and its loss; a world whose numbers cease to be finite begins anew, and so does the window."""
        for _ in range(len(self.worlds.age) + 1):
            before = self.worlds.state_dict()
            try:
                with self._spread_over_worlds():
                    window = self.worlds.window(self.policy, self._observe, number)
            except NonFiniteError as error:
                world = lost_world(error)
                dropped = self.worlds.dropped
                self.worlds.load_state_dict({**before, "draws": self.worlds.draws, "dropped": dropped})
                self.worlds.restart(world)
                continue
            loss = self._loss(window)
            if not torch.isfinite(loss):
                raise InputError(f"the cost of update {number} is {loss.item()}; it must be finite")
            return window, loss
        raise InputError("no world can go on from its start with finite numbers; look at the starts and the time step")

    def _loss(self, window: Window) -> torch.Tensor:
        """Costs of the window and the value of its ends.

        Where a world failed, the value of that state counts too: it is what the critic has learned of failing (nothing
        comes after), and its slope is all that tells a policy within the window which way leads out of it.
        """
        weights = step_weights(window.ended, self._discount).to(window.costs.dtype)
        last, failed = (frames.gather(0, window.last) for frames in (window.ended, window.failed))
        goes_on = last | failed
        goes_on[-1] = True
        rest = self._discount * goes_on * weights.gather(0, window.last) * self.critic(self._normalized(window.ends))
        return ((weights * window.costs).sum() + rest.sum()) / window.costs.shape[1]

    def _move(self, loss: torch.Tensor, number: int) -> float:
        """One step of the optimizer; returns the gradient's norm. A gradient that is not finite moves nothing."""
        self._optimizer.zero_grad()
        try:
            loss.backward()
        except NonFiniteError as error:
            self.worlds.restart(lost_world(error))
            return float("inf")
        except UnconvergedError:
            return float("inf")
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self._clip))
        if self._gradients is not None:
            self.worlds.dropped += self._gradients.dropped
        if number >= self._warm_up and norm < float("inf"):
            self._optimizer.step()
        return norm

    def _fit(self, window: Window) -> float:
        with torch.no_grad():
            before, reached = (self._normalized(f) for f in (window.before, window.reached))
            targets = blended_returns(
                window.costs, self.critic(reached), window.failed, window.ended, self._discount, self._blend
            )
        lost = window.counted & window.failed  # what the critic is to know of failing
        features = torch.cat([before[window.counted], reached[lost]])
        return self.critic.fit(features, torch.cat([targets[window.counted], torch.zeros_like(targets[lost])]))

    def _normalized(self, features: torch.Tensor) -> torch.Tensor:
        if self.normalizer is None:
            return features
        return (features - self.normalizer.mean) / self.normalizer.deviation

    def _show_moments(self) -> None:
        """Lets the policies see with the moments learned so far."""
        assert self.normalizer is not None
        for policy in (self.policy, self.average):
            if isinstance(policy, NetworkPolicy):
                policy.mean.copy_(self.normalizer.mean)
                policy.deviation.copy_(self.normalizer.deviation)


def _check_shares(discount: float, blend: float, average: float) -> None:
    if not (0.0 <= discount <= 1.0 and 0.0 <= blend <= 1.0 and 0.0 <= average < 1.0):
        raise InputError(f"discount={discount} and blend={blend} must be from 0 to 1, average={average} below 1")


def _observer(policy: torch.nn.Module) -> Observe:
    if not isinstance(policy, NetworkPolicy):
        raise InputError("only a NetworkPolicy says itself what it sees; give observe=, what the critic is to see")
    return lambda states: policy.observe(states.q, states.qd)
