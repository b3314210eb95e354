"""Recordings from MCAP files: topics are channels, messages JSON.

A topic is "CHANNEL" or "/RECORDING/CHANNEL" ("q", "joint:elbow", "/swing 3/controls" …); without a recording in it, the
file is one, named after itself. A message is a number, a list of numbers (null: not measured), or {"data": one of
them}; its log time is when it was measured. A recording's samples are those of its topic with the most messages;
messages of the others belong to the nearest sample, if it is within half a sample's distance, and controls act until
the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.core.errors import InputError
from warpsim.identification.recordings import Recording, in_si

_NANOSECONDS = 1e-9


def read_mcap(
    file: Path, make_reader: Callable[..., Any], error: type[Exception], units: Mapping[str, str]
) -> list[Recording]:
    """Reads a file.

    Args:
        file: Where.
        make_reader: Of the library.
        error: What the library raises for a file that is not one.
        units: Of channels that are not in SI.
    """
    topics: dict[str, dict[str, list[tuple[float, np.ndarray]]]] = {}
    try:
        with file.open("rb") as stream:
            for _, channel, message in make_reader(stream).iter_messages():
                recording, name = _named(file, channel.topic)
                samples = topics.setdefault(recording, {}).setdefault(name, [])
                samples.append((_NANOSECONDS * message.log_time, _numbers(file, channel, message, len(samples))))
    except error as problem:
        raise InputError(f"{file}: not a readable .mcap file: {problem or type(problem).__name__}") from None
    if not topics:
        raise InputError(f"{file}: it holds no messages")
    return [_recording(file, name, channels, units) for name, channels in topics.items()]


def _named(file: Path, topic: str) -> tuple[str, str]:
    """(recording, channel) of a topic."""
    recording, _, channel = topic.strip("/").rpartition("/")
    return recording or file.stem, channel


def _numbers(file: Path, channel: Any, message: Any, sample: int) -> np.ndarray:
    where = f"{file}, topic {channel.topic!r}, message {sample}"
    if channel.message_encoding != "json":
        raise InputError(
            f"{where}: encoded as {channel.message_encoding!r}; JSON is read: convert the file, or give `Recording`s"
        )
    try:
        value = json.loads(message.data)
        value = value["data"] if isinstance(value, dict) else value
        return np.atleast_1d(np.array(value, dtype=np.float64))  # null becomes NaN
    except (ValueError, TypeError, KeyError):
        said = bytes(message.data[:60]).decode("utf-8", "replace")
        raise InputError(f"{where}: {said!r} is no number, list of numbers or {{'data': …}}") from None


def _recording(
    file: Path, name: str, topics: Mapping[str, list[tuple[float, np.ndarray]]], units: Mapping[str, str]
) -> Recording:
    measured = {n: samples for n, samples in topics.items() if n != "controls"}
    if not measured:
        raise InputError(f"{file}, recording {name!r}: it holds controls, and nothing that was measured")
    times = np.array([time for time, _ in max(measured.values(), key=len)])
    channels = {n: _laid(f"{file}, recording {name!r}, topic {n!r}", samples, times) for n, samples in measured.items()}
    controls = _held(topics["controls"], times) if "controls" in topics else None
    return Recording(name, times, in_si(channels, {n: u for n, u in units.items() if n in channels}), controls)


def _laid(where: str, samples: list[tuple[float, np.ndarray]], times: np.ndarray) -> np.ndarray:
    """(n, …) a topic's numbers at the samples nearest to them; NaN where there are none."""
    shape = samples[0][1].shape
    made = np.full((len(times), *shape), np.nan)
    near = float(np.median(np.diff(times))) / 2 if len(times) > 1 else np.inf
    for place, (time, numbers) in enumerate(samples):
        if numbers.shape != shape:
            raise InputError(f"{where}, message {place}: {numbers.size} numbers, the first one has {shape[0]}")
        sample = int(np.abs(times - time).argmin())
        if abs(times[sample] - time) <= near:
            made[sample] = numbers
    return made


def _held(samples: list[tuple[float, np.ndarray]], times: np.ndarray) -> np.ndarray:
    """(n, nu): the last control before or at each sample; the first one before that."""
    given = np.array([time for time, _ in samples])
    return np.stack([samples[max(0, int(np.searchsorted(given, t, side="right")) - 1)][1] for t in times])
