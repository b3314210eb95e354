"""Worlds that go on from window to window and begin anew one by one, and what they saw and cost on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from warpsim.core.errors import InputError
from warpsim.learn.past import Past, column
from warpsim.learn.rank_rollouts import RankRollouts
from warpsim.sim.policy_rollout import Policy
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.tape.diagnostics import NonFiniteError
from warpsim.tape.memory import Memory

Cost = Callable[[Observed, torch.Tensor], torch.Tensor]
"""(states reached (n, W, …), controls that led there (n, W, control size)) → (n, W)."""
Starts = Callable[[int], Mapping[str, torch.Tensor]]
"""Number of a draw → initial "q" (W, nq), "qd" (W, nv) and, if there are any, "activation" (W, na) of all worlds."""
Observe = Callable[[Observed], torch.Tensor]
"""States (…, W, …) → features (…, W, n)."""
Perturb = Callable[[int, Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]
"""(number of the window, states of all worlds) → the states with which it begins."""


@dataclass(frozen=True)
class Timing:
    """Lengths in controls and steps.

    Attributes:
        hold: Steps for which a control is held.
        part: Controls after which worlds may begin anew.
        parts: Parts of a window.
        episode: Controls after which a world begins anew.
    """

    hold: int
    part: int
    parts: int
    episode: int

    @classmethod
    def of(cls, timestep: float, *, period: float, window: float, parts: int, episode: float) -> Timing:
        """From seconds; `period` must be whole steps, and a window whole controls in each part."""
        hold, controls = round(period / timestep), round(window / period)
        if hold < 1 or abs(hold * timestep - period) > 1e-6 * period:
            raise InputError(f"period={period:g} s is not a whole number of time steps of {timestep:g} s")
        if parts < 1 or controls < parts or controls % parts:
            raise InputError(f"window={window:g} s has {controls} controls; they cannot be cut into parts={parts}")
        if episode < window:
            raise InputError(f"episode={episode:g} s is shorter than a window of {window:g} s")
        return cls(hold, controls // parts, parts, round(episode / period))


@dataclass(frozen=True)
class Window:
    """A window, one frame a control, n frames, W worlds.

    Attributes:
        before: (n, W, f) features of the states in which the policy was asked.
        reached: (n, W, f) features of the states that followed.
        ends: (parts, W, f) those of the states in which each part ends, in the graph: its last, or where it failed.
        last: (parts, W), int: frames that led there.
        costs: (n, W), in the graph; zero in frames that do not count.
        counted: (n, W), bool: false after a failure, until the world begins anew.
        failed: (n, W), bool: the state reached ends the episode.
        ended: (n, W), bool: the next frame does not go on from this one.
    """

    before: torch.Tensor
    reached: torch.Tensor
    ends: torch.Tensor
    last: torch.Tensor
    costs: torch.Tensor
    counted: torch.Tensor
    failed: torch.Tensor
    ended: torch.Tensor


class Worlds:
    """The worlds of a training.

    Attributes:
        state: By field, (W, …) each.
        age: (W,) controls since each began.
        draws: How many starts were drawn.
        dropped: Worlds that began anew since their numbers were no longer finite.
        past: Where they were a short time ago.
    """

    def __init__(
        self,
        sim: Simulator,
        timing: Timing,
        cost: Cost,
        starts: Starts,
        failed: Callable[[Observed], torch.Tensor] | None,
        perturb: Perturb | None,
        *,
        threads: int,
        seed: int,
        retry: float = 0.0,
    ) -> None:
        """Draws the first states, and how old each world is; see `SHAC` for the arguments."""
        self._sim, self._timing, self._cost = sim, timing, cost
        self._roll = RankRollouts(sim)
        self._starts, self._failed, self._perturb, self._threads = starts, failed, perturb, threads
        self.draws, self.dropped = 0, 0
        self.past = Past(retry, seed=seed)
        self.state = self._fresh()
        generator = torch.Generator().manual_seed(seed)
        self.age = torch.randint(0, timing.episode, (sim.worlds,), generator=generator).to(sim.device)

    def window(self, policy: Policy, observe: Observe, number: int) -> Window:
        """Lets all worlds go on for a window, in torch's graph; they stay where they end."""
        if self._perturb is not None:
            self.state = {n: v.detach() for n, v in self._perturb(number, self.state).items()}
        state: Mapping[str, torch.Tensor] = self.state
        self.past.note(state)
        frames: list[tuple[torch.Tensor, ...]] = []
        for _ in range(self._timing.parts):
            states = self._roll_out(policy, state)
            frames.append(self._seen(policy, observe, states, len(frames) * self._timing.part))
            counted, failed, ended = frames[-1][5:]
            state = self._begin_anew(states, (counted & failed).any(0), ended)
        self.state = {name: value.detach() for name, value in state.items()}
        return Window(*(torch.cat(column) for column in zip(*frames, strict=True)))

    def restart(self, world: int) -> None:
        """Lets a world begin anew since its numbers are no longer finite."""
        self.dropped += 1
        fresh = self._fresh()
        self.state = {name: _with(value, world, fresh[name]) for name, value in self.state.items()}
        self.age[world] = 0
        which = torch.zeros_like(self.age, dtype=torch.bool)
        which[world] = True
        self.past.begin_anew(which, self.state)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "state": self.state,
            "age": self.age.clone(),
            "draws": self.draws,
            "dropped": self.dropped,
            "past": self.past.state_dict(),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        self.state, self.age = dict(saved["state"]), saved["age"].clone()
        self.draws, self.dropped = saved["draws"], saved["dropped"]
        self.past.load_state_dict(saved.get("past", []))

    def _fresh(self) -> dict[str, torch.Tensor]:
        made = {name: value.detach() for name, value in self._starts(self.draws).items()}
        self.draws += 1
        return made

    def _roll_out(self, policy: Policy, state: Mapping[str, torch.Tensor]) -> Observed:
        """States at every control of a part, (n + 1, W, …)."""
        sim, timing = self._sim, self._timing
        steps = timing.part * timing.hold
        motion = self._roll(
            policy,
            steps,
            start=state,
            hold=timing.hold,
            memory=Memory(segment=steps),
            **in_kernels(policy, self._threads),
        )
        return Observed(sim.model, {name: value[:: timing.hold] for name, value in motion.items()})

    def _seen(self, policy: Policy, observe: Observe, states: Observed, first: int) -> tuple[torch.Tensor, ...]:
        """The fields of a window for one part, whose first frame is the window's frame `first`."""
        parts: tuple[Any, Any] = (slice(None, -1), slice(1, None))
        before, reached = (Observed(self._sim.model, {n: v[part] for n, v in states.items()}) for part in parts)
        costs = self._cost(reached, policy(before))
        if costs.shape != reached.q.shape[:2]:
            raise InputError(f"the cost has shape {tuple(costs.shape)}; needed: {tuple(reached.q.shape[:2])}")
        failed = torch.zeros(costs.shape, dtype=torch.bool, device=costs.device)
        if self._failed is not None:
            failed = self._failed(reached)
        counted = torch.ones_like(failed)
        counted[1:] = failed[:-1].cummax(0).values == 0
        ended = torch.zeros_like(failed)  # its last frame is decided by whoever goes on
        with torch.no_grad():
            features = observe(states)
        last = counted.sum(0) - 1
        each = torch.arange(len(last), device=last.device)
        end = observe(Observed(self._sim.model, {n: v[last + 1, each].unsqueeze(0) for n, v in states.items()}))
        costs = torch.where(counted, costs, 0.0)
        return features[:-1], features[1:], end, (first + last).unsqueeze(0), costs, counted, failed, ended

    def _begin_anew(self, states: Observed, fell: torch.Tensor, ended: torch.Tensor) -> dict[str, torch.Tensor]:
        """States with which the next part begins; the last frame of `ended` says in which worlds those are others."""
        self.age += self._timing.part
        out_of_time = self.age >= self._timing.episode
        over = fell | out_of_time
        ended[-1] = over
        if not bool(over.any()):
            return {name: states[name][-1] for name in self.state}
        back = self.past.tried_again(fell & ~out_of_time, self.draws)
        self.age = torch.where(over & ~back, 0, self.age)
        begun = self._fresh()
        if bool(back.any()):
            begun = {name: torch.where(column(back, v), self.past.state[name], v) for name, v in begun.items()}
        self.past.begin_anew(over, begun)
        return {name: torch.where(column(over, value), value, states[name][-1]) for name, value in begun.items()}


def in_kernels(policy: Policy, threads: int) -> dict[str, Any]:
    """Arguments of a rollout that only a policy in kernels takes."""
    return {"threads": threads} if hasattr(policy, "weights_in_kernels") else {}


def _with(values: torch.Tensor, world: int, fresh: torch.Tensor) -> torch.Tensor:
    changed = values.clone()
    changed[world] = fresh[world]
    return changed


def lost_world(error: NonFiniteError) -> int:
    """The world of an error; raises it where no single world is at fault."""
    if error.world < 0 or error.shortage is not None:
        raise error
    return error.world
