"""A recording from messages: every channel has its own times, and one of them gives the samples.

A recording's samples are those of its channel with the most messages; messages of the others belong to the nearest
sample, if it is within half a sample's distance, and controls act until the next one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from warpsim.core.errors import InputError
from warpsim.identification.recordings import Recording, in_si

Messages = list[tuple[int, np.ndarray]]
"""Time in ns and numbers of each."""
_NANOSECONDS = 1e-9


def recording_of(where: str, name: str, topics: Mapping[str, Messages], units: Mapping[str, str]) -> Recording:
    """Lays messages on one grid of samples.

    Args:
        where: The file, for errors.
        name: Of the recording.
        topics: By channel; "controls" among them acts, the others were measured.
        units: Of channels that are not in SI.
    """
    measured = {n: messages for n, messages in topics.items() if n != "controls"}
    if not measured:
        raise InputError(f"{where}, recording {name!r}: it holds controls, and nothing that was measured")
    first = min(messages[0][0] for messages in measured.values())
    times = _seconds(max(measured.values(), key=len), first)
    channels = {
        n: _laid(f"{where}, recording {name!r}, topic {n!r}", messages, times, first)
        for n, messages in measured.items()
    }
    controls = _held(topics["controls"], times, first) if "controls" in topics else None
    return Recording(name, times, in_si(channels, {n: u for n, u in units.items() if n in channels}), controls)


def _seconds(messages: Messages, first: int) -> np.ndarray:
    """(n,) s since the first message; differences of whole ns, since seconds of an epoch have too few digits."""
    return _NANOSECONDS * np.array([time - first for time, _ in messages])


def _laid(where: str, messages: Messages, times: np.ndarray, first: int) -> np.ndarray:
    """(n, …) a channel's numbers at the samples nearest to them; NaN where there are none."""
    shape = messages[0][1].shape
    made = np.full((len(times), *shape), np.nan)
    near = float(np.median(np.diff(times))) / 2 if len(times) > 1 else np.inf
    for place, (time, (_, numbers)) in enumerate(zip(_seconds(messages, first), messages, strict=True)):
        if numbers.shape != shape:
            raise InputError(f"{where}, message {place}: {numbers.size} numbers, the first one has {shape[0]}")
        sample = int(np.abs(times - time).argmin())
        if abs(times[sample] - time) <= near:
            made[sample] = numbers
    return made


def _held(messages: Messages, times: np.ndarray, first: int) -> np.ndarray:
    """(n, nu): the last control before or at each sample; the first one before that."""
    given = _seconds(messages, first)
    return np.stack([messages[max(0, int(np.searchsorted(given, t, side="right")) - 1)][1] for t in times])
