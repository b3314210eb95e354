"""Delays: a channel that shows the motion as it was a while ago, controls that act a while after they were given.

The motion is read between two steps, so that what it says depends on the delay smoothly within a step, with an exact
derivative. A control is held from one sample to the next; delayed, each step is given its mean over the step, which is
piecewise linear in the delay. Samples that a delay within its bounds could take out of the rollout are never compared:
what is compared does not depend on the delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from warpsim.core.errors import InputError
from warpsim.core.torch_quaternions import quat_exponential, quat_logarithm, quat_product
from warpsim.identification.grid import Channel
from warpsim.rigid.model.tangent import difference, shift
from warpsim.rigid.model.topology import Layout

DELAY = "delay"
"""Key of a delay of all channels; "delay:CHANNEL" of one, "delay:controls" of the controls."""
_CONTROLS = "delay:controls"


def is_delay(key: str) -> bool:
    """Whether a parameter's key means a delay."""
    return key == DELAY or key.startswith(f"{DELAY}:")


def check_delays(keys: Iterable[str], channels: Iterable[Channel], *, controlled: bool) -> None:
    """Whether there is what is said to be late.

    Args:
        keys: Of delays.
        channels: That are compared.
        controlled: Whether recordings have controls.
    """
    names = {f"{DELAY}:{channel.name}" for channel in channels}
    for key in keys:
        if key == _CONTROLS and not controlled:
            raise InputError(f"{key!r}: the recordings have no controls")
        if key not in (DELAY, _CONTROLS, *names):
            raise InputError(
                f"{key!r}: no such channel is compared; give {DELAY!r} (all channels), {_CONTROLS!r} or one of "
                + ", ".join(map(repr, sorted(names)))
            )


def each_once(given: Iterable[tuple[str, tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Keys of delays with their bounds; raises where two parameters set the same."""
    found: dict[str, tuple[float, float]] = {}
    for key, bounds in given:
        if key in found:
            raise InputError(f"{key!r} is set by two parameters; give it to one of them")
        found[key] = bounds
    return found


def of_channel(name: str, given: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    """(B,) s by which a channel is late: its own delay, else that of all."""
    return given.get(f"{DELAY}:{name}", given.get(DELAY))


def of_controls(given: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    """(B,) s by which controls are late."""
    return given.get(_CONTROLS)


def bounds_of(name: str, bounds: Mapping[str, tuple[float, float]]) -> tuple[float, float] | None:
    """s, within which a channel's delay lies."""
    return bounds.get(f"{DELAY}:{name}", bounds.get(DELAY))


def lead_of(bounds: Mapping[str, tuple[float, float]], interval: float) -> int:
    """Samples before a rollout's start whose controls may still act in it."""
    return max(0, -int(-bounds.get(_CONTROLS, (0.0, 0.0))[1] // interval))


def inside(bounds: tuple[float, float], interval: torch.Tensor, samples: int) -> torch.Tensor:
    """(B, samples − 1) whether a sample after the first is within the rollout for every delay that bounds allow."""
    times = interval[:, None] * torch.arange(1, samples)
    room = 1e-9 * interval[:, None]
    return (times - bounds[1] >= -room) & (times - bounds[0] <= interval[:, None] * (samples - 1) + room)


def read_late(
    layout: Layout, channel: Channel, made: torch.Tensor, seconds: torch.Tensor, interval: torch.Tensor, every: int
) -> torch.Tensor:
    """(B, samples − 1, …) what a rollout says of a channel at the samples after the first, `seconds` earlier.

    Args:
        layout: The scene's joints.
        channel: Which.
        made: (steps + 1, B, …) at every step.
        seconds: (B,).
        interval: (B,) s between samples.
        every: Steps per sample.
    """
    steps = len(made) - 1
    at = torch.arange(every, steps + 1, every)[:, None] - every * seconds / interval  # (samples − 1, B), in steps
    below = at.detach().floor().clamp(0, steps - 1).long()
    share = (at - below).reshape(*at.shape, *[1] * (made.dim() - 2))
    world = torch.arange(made.shape[1])
    first, second = made[below, world], made[below + 1, world]
    if channel.kind == "q":
        between = shift(layout, first, share * difference(layout, second, first))
    elif channel.kind == "rotation":
        back = first * first.new_tensor([1.0, -1.0, -1.0, -1.0])
        between = quat_product(first, quat_exponential(share * quat_logarithm(quat_product(back, second))))
    else:
        between = first + share * (second - first)
    return between.transpose(0, 1)


def act_late(
    controls: torch.Tensor, lead: int, seconds: torch.Tensor, interval: torch.Tensor, every: int
) -> torch.Tensor:
    """(steps, B, nu) controls that act in each step, of ones held from sample to sample and acting `seconds` later.

    Args:
        controls: (B, lead + samples − 1, nu); the first acts before them, too, the last after them.
        lead: Samples of them before the rollout's start.
        seconds: (B,).
        interval: (B,) s between samples.
        every: Steps per sample.
    """
    count = controls.shape[1]
    total = torch.nn.functional.pad(controls.cumsum(1), (0, 0, 1, 0))  # ∫ u dt in samples, at each sample
    edges = lead + torch.arange((count - lead) * every + 1) / every - (seconds / interval)[:, None]  # (B, steps + 1)
    below = edges.detach().floor().clamp(0, count - 1).long()
    share = (edges - below)[..., None]
    row = torch.arange(len(controls))[:, None]
    integral = total[row, below] + share * controls[row, below]
    return ((integral[:, 1:] - integral[:, :-1]) * every).transpose(0, 1)
