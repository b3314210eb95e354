"""`BoundTraining`: rewards, ends of episodes and starts of a `Training`, on the worlds of a simulator."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import torch

from warpsim.core.errors import InputError
from warpsim.sim.attributes.attribute import Attribute
from warpsim.sim.randomization import Randomization
from warpsim.sim.simulator import Simulator
from warpsim.sim.trajectory import Observed
from warpsim.task.rewards import Fall, Reward
from warpsim.task.training import Training, read_training


class BoundTraining:
    """What a control is worth, when an episode ends and where it begins.

    Attributes:
        sim: The worlds, with what differs between them in force.
        training: What is asked for.
        hold: Steps for which a control is held.
    """

    def __init__(self, sim: Simulator, training: Training) -> None:
        """Binds.

        Args:
            sim: With the outputs that the rewards read; `bind_training` makes one.
            training: What is asked for.
        """
        self.sim, self.training = sim, training
        self.hold = round(training.period / sim.timestep)
        if self.hold < 1 or abs(self.hold * sim.timestep - training.period) > 1e-6 * training.period:
            raise InputError(f"period={training.period:g} s is not a whole number of time steps of {sim.timestep:g} s")
        self._rewards = [reward.bind(sim, training.period) for reward in training.rewards]
        self._rewards += [fall.bind_margin(sim, training.period) for fall in training.falls if fall.weight]
        self._falls = [fall.bind(sim, training.period) for fall in training.falls]
        if training.randomized:
            drawn: dict[str | Attribute, Randomization] = {
                item.attribute: Randomization(relative=item.relative or None, absolute=item.absolute or None)
                for item in training.randomized
            }
            sim.set_parameters(sim.draw(drawn, seed=training.seed))

    def reward(self, states: Observed, controls: torch.Tensor) -> torch.Tensor:
        """(n, W): of the states reached (n, W, …) and the controls that led there (n, W, m)."""
        total = self._rewards[0](states, controls)
        for part in self._rewards[1:]:
            total = total + part(states, controls)
        return total

    def failed(self, states: Observed) -> torch.Tensor:
        """(n, W): whether an episode ends in these states."""
        total = torch.zeros(states.q.shape[:2], dtype=torch.bool, device=states.q.device)
        for part in self._falls:
            total = total | part(states)
        return total

    def starts(self, number: int) -> dict[str, Any]:
        """Where worlds begin, (W, …) by field, drawn anew for each number."""
        spread = self.training.starts
        drawn: dict[str | Attribute, Randomization] = {
            "q": Randomization(base=None if spread.pose is None else list(spread.pose), absolute=spread.position),
            "qd": Randomization(absolute=spread.velocity, kind="normal"),
        }
        if "activation" in self.sim.state_names:
            drawn["activation"] = Randomization(absolute=0.0)
        return {str(key): value for key, value in self.sim.draw(drawn, seed=self.seed(number)).items()}

    def kicked(self, number: int, state: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """The states of all worlds with velocities of hinges and slides changed at random."""
        joints = [self.sim.joint(name) for name in self.sim.joint_names]
        dofs = [joint.dofs.start for joint in joints if joint.kind in ("hinge", "slide")]
        generator = torch.Generator().manual_seed(self.seed(number))
        qd = state["qd"].clone()
        noise = torch.randn(len(qd), len(dofs), generator=generator, dtype=qd.dtype).to(qd.device)
        qd[:, dofs] += self.training.starts.kick * noise
        return {**state, "qd": qd}

    def seed(self, number: int) -> int:
        """Of the number-th draw: those of two seeds of the training do not meet."""
        return 10_000_000 * self.training.seed + number


def bind_training(
    source: str | PathLike[str] | Simulator, training: Training | str | None = None, *, worlds: int | None = None
) -> BoundTraining:
    """A training on a simulator of its own.

    Args:
        source: The scene's file, or a simulator of it.
        training: What is asked for, or the path of its prim; None: the only one in the file.
        worlds: How many; None: as many as the training says.
    """
    one = source if isinstance(source, Simulator) else Simulator(source, worlds=1)
    if not isinstance(training, Training):
        if one.path is None:
            raise InputError("this simulator was not read from a file: give the training itself")
        training = read_training(one.path, one.scene, training)
    parts: list[Reward | Fall] = [*training.rewards, *training.falls]
    outputs = {name: None for part in parts for name in part.outputs(one)}
    scene = one.scene if one.path is None else one.path
    made = Simulator(scene, worlds=training.worlds if worlds is None else worlds, outputs=tuple(outputs))
    return BoundTraining(made, training)
