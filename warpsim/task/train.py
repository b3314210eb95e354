"""Trains what a `Training` says: makes the trainer from it, runs it, and tells how the policy does."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import torch

from warpsim.core.errors import InputError
from warpsim.learn.critic import Critic
from warpsim.learn.iteration import Iteration
from warpsim.learn.judge import Judge, Score
from warpsim.learn.log import TrainingLog
from warpsim.learn.shac import SHAC
from warpsim.parallel.ranks import by_first, current
from warpsim.sim.network_policy import NetworkPolicy
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.task.bound_training import BoundTraining, bind_training
from warpsim.task.training import Training

CHECKPOINT = "checkpoint.pt"
UNSEEN = 2_000_000
"""Number of the starts on which a finished training is judged: neither trained on nor used to choose."""
JUDGED = 10.0
"""Length of the rollouts on which it is, s."""
_SNAPSHOTS = 6


@dataclass(frozen=True)
class Trained:
    """A finished training.

    Attributes:
        sim: The worlds it was trained in.
        training: What was asked for.
        policy: The one that cost least in an evaluation.
        last: The last one, averaged.
        score: Of `policy` on starts that nothing has seen, `JUDGED` seconds; the reward per control is −cost.
        last_score: Of `last`, likewise.
        history: All updates.
        snapshots: Averaged policies on the way, by the number of the update.
    """

    sim: Simulator
    training: Training
    policy: NetworkPolicy
    last: NetworkPolicy
    score: Score
    last_score: Score
    history: list[Iteration]
    snapshots: Mapping[int, NetworkPolicy]


class TrainingRun:
    """A `Training` and the trainer that does it.

    Attributes:
        bound: Rewards, ends and starts, on the worlds of a simulator.
        training: What is asked for.
        trainer: Does it.
        snapshots: Averaged policies on the way, by the number of the update.
    """

    def __init__(self, bound: BoundTraining) -> None:
        """Makes the policy; nothing is trained yet."""
        self.bound, self.training = bound, bound.training
        sim, training = bound.sim, bound.training
        self._scale = 5.0 * (1.0 - training.discount)  # so that values are of the size of a critic's first answers
        policy = sim.network_policy(
            hidden=training.hidden, activation=training.activation, senses=training.senses, seed=training.seed
        )
        with torch.no_grad():
            policy.linear[-1].weight.mul_(0.1)  # at first it does next to nothing
        self.snapshots: dict[int, NetworkPolicy] = {}
        self.trainer = SHAC(
            sim,
            policy,
            self.cost,
            bound.starts,
            failed=bound.failed if training.falls else None,
            perturb=bound.kicked if training.starts.kick else None,
            window=training.window,
            period=training.period,
            episode=training.episode,
            discount=training.discount,
            rate=training.rate,
            rate_decay=training.rate_decay,
            warm_up=training.warm_up,
            retry=training.retry,
            world_clip=training.world_clip,
            critic=Critic(len(policy.features), seed=training.seed, device=sim.device),
            evaluate_every=training.evaluate_every,
            patience=6,
            seed=training.seed,
        )

    def cost(self, states: Observed, controls: torch.Tensor) -> torch.Tensor:
        """(n, W): the reward, with the other sign and scaled."""
        return -self._scale * self.bound.reward(states, controls)

    def judge(self, policy: NetworkPolicy, number: int = UNSEEN) -> Score:
        """Mean reward per control, with the other sign, over `JUDGED` seconds from starts of their own; and falls."""
        bound = self.bound
        judge = Judge(
            bound.sim,
            lambda states, controls: -bound.reward(states, controls),
            bound.starts,
            bound.failed if self.training.falls else None,
            hold=bound.hold,
            seconds=JUDGED,
            number=number,
        )
        return judge(policy)

    def note(self, made: Iteration) -> None:
        """Keeps a few policies on the way, evenly spread however long it takes."""
        if made.score is None:
            return
        self.snapshots[made.number] = copy.deepcopy(_network(self.trainer.average))
        if len(self.snapshots) >= 2 * _SNAPSHOTS:
            for number in list(self.snapshots)[1::2]:
                del self.snapshots[number]


def train(
    source: str | PathLike[str] | Simulator,
    training: Training | str | None = None,
    *,
    folder: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = False,
    stop: Callable[[Iteration], bool] | None = None,
) -> Trained:
    """Trains a policy.

    Args:
        source: The scene's file, or a simulator of it.
        training: What is asked for, or the path of its prim; None: the only one in the file.
        folder: Where the log grows and a checkpoint is kept at each evaluation, on the first of several ranks; None:
            nowhere.
        resume: Go on from the checkpoint in the folder.
        progress: Show a bar.
        stop: Asked after each update; True ends the training. On several ranks all must say the same.
    """
    run = TrainingRun(bind_training(source, training))
    trainer, asked = run.trainer, run.training
    if resume:
        if folder is None or not has_checkpoint(folder):
            raise InputError(f"nothing to go on with: there is no {CHECKPOINT} in {folder}")
        trainer.load(Path(folder) / CHECKPOINT)
    ranks = current()
    writes = folder is not None and (ranks is None or ranks.first)
    log = TrainingLog(folder, keep=len(trainer.history)) if folder is not None and writes else None

    def after(made: Iteration) -> bool:
        run.note(made)
        if log is not None and folder is not None:
            log(made)
            if made.score is not None:
                trainer.save(Path(folder) / CHECKPOINT)
        return stop is not None and stop(made)

    used = trainer.history[-1].seconds if trainer.history else 0.0
    left = None if asked.updates is None else asked.updates - len(trainer.history)
    if left is None or left > 0:
        seconds = None if asked.seconds is None else asked.seconds - used
        trainer.train(left, seconds=seconds, progress=progress, until=after)
    trainer.evaluate()
    best, last = _network(trainer.best_policy()), _network(copy.deepcopy(trainer.average))
    return Trained(
        run.bound.sim, asked, best, last, run.judge(best), run.judge(last), list(trainer.history), dict(run.snapshots)
    )


def has_checkpoint(folder: str | PathLike[str]) -> bool:
    """Whether a training can go on from there; on several ranks the first one looks."""
    return by_first(lambda: (Path(folder) / CHECKPOINT).is_file(), "looking for a checkpoint")


def _network(policy: torch.nn.Module) -> NetworkPolicy:
    assert isinstance(policy, NetworkPolicy)
    return policy
