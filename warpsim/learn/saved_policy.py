"""Policies in files: weights together with all that is needed to use them, and the same as ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import torch

from warpsim.core.errors import InputError
from warpsim.core.files import replacing
from warpsim.sim.network_policy import NetworkPolicy, NetworkShape
from warpsim.sim.simulator import Simulator

FORMAT = "warpsim policy 1"


@dataclass(frozen=True)
class SavedPolicy:
    """A policy from a file.

    Attributes:
        policy: With its weights, mean and deviation.
        period: From control to control, s.
        notes: What whoever saved it wrote about it.
    """

    policy: NetworkPolicy
    period: float
    notes: dict[str, Any]

    def hold(self, sim: Simulator) -> int:
        """Steps of a simulator for which each control is held.

        Raises:
            InputError: The policy is for another robot, or its period is no whole number of time steps.
        """
        shape, steps = self.policy.shape, round(self.period / sim.timestep)
        if shape.controls != sim.control_names or sum(shape.sizes) != sim.control_size:
            raise InputError(
                f"the policy gives {sum(shape.sizes)} numbers of {', '.join(shape.controls)}; {sim.scene.name} takes "
                f"{sim.control_size} of {', '.join(sim.control_names)}: it was trained for another robot"
            )
        if steps < 1 or abs(steps * sim.timestep - self.period) > 1e-6 * self.period:
            raise InputError(
                f"the policy gives a control every {self.period:g} s, no whole number of time steps of "
                f"{sim.timestep:g} s; change the scene's time step"
            )
        return steps


def save_policy(
    policy: NetworkPolicy, path: str | PathLike[str], *, period: float, notes: dict[str, Any] | None = None
) -> Path:
    """Writes a policy.

    Args:
        policy: What to write.
        path: A .pt file, which `torch.load(path, weights_only=True)` reads too.
        period: From control to control, s.
        notes: Numbers and words to keep with it.
    """
    content = {
        "format": FORMAT,
        "shape": policy.shape.to_dict(),
        "weights": {name: value.detach().cpu() for name, value in policy.state_dict().items()},
        "period": period,
        "notes": dict(notes or {}),
    }
    with replacing(path) as temporary:
        torch.save(content, temporary)
    return Path(fspath(path))


def load_policy(path: str | PathLike[str], *, device: torch.device | str = "cpu") -> SavedPolicy:
    """Reads what `save_policy` wrote.

    Raises:
        InputError: It is no such file.
    """
    if not Path(path).is_file():
        raise InputError(f"no file {fspath(path)!r}")
    try:
        content = torch.load(path, weights_only=True, map_location=device)
    except Exception as error:
        raise InputError(f"{fspath(path)} is no policy; `warpsim train` and `save_policy` write them") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{fspath(path)} is no policy of ours; `warpsim train` and `save_policy` write them")
    policy = NetworkPolicy(NetworkShape.from_dict(content["shape"]), device=device)
    policy.load_state_dict(content["weights"])
    return SavedPolicy(policy, float(content["period"]), content["notes"])
