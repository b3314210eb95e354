"""Recordings from MCAP files: topics are channels, messages JSON.

A topic is "CHANNEL" or "/RECORDING/CHANNEL" ("q", "joint:elbow", "/swing 3/controls" …); without a recording in it, the
file is one, named after itself. A message is a number, a list of numbers (null: not measured), or {"data": one of
them}; its log time is when it was measured. How messages become samples: `warpsim.identification.topics`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.core.errors import InputError
from warpsim.identification.recordings import Recording
from warpsim.identification.topics import Messages, recording_of


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
    topics: dict[str, dict[str, Messages]] = {}
    try:
        with file.open("rb") as stream:
            for _, channel, message in make_reader(stream).iter_messages():
                recording, name = _named(file, channel.topic)
                samples = topics.setdefault(recording, {}).setdefault(name, [])
                samples.append((message.log_time, _numbers(file, channel, message, len(samples))))
    except error as problem:
        raise InputError(f"{file}: not a readable .mcap file: {problem or type(problem).__name__}") from None
    if not topics:
        raise InputError(f"{file}: it holds no messages")
    return [recording_of(str(file), name, channels, units) for name, channels in topics.items()]


def _named(file: Path, topic: str) -> tuple[str, str]:
    """(recording, channel) of a topic."""
    recording, _, channel = topic.strip("/").rpartition("/")
    return recording or file.stem, channel


def _numbers(file: Path, channel: Any, message: Any, sample: int) -> np.ndarray:
    where = f"{file}, topic {channel.topic!r}, message {sample}"
    if channel.message_encoding != "json":
        raise InputError(
            f"{where}: encoded as {channel.message_encoding!r}; JSON is read; "
            "of a ROS 2 bag, give the folder, not the file in it"
        )
    try:
        value = json.loads(message.data)
        value = value["data"] if isinstance(value, dict) else value
        return np.atleast_1d(np.array(value, dtype=np.float64))  # null becomes NaN
    except (ValueError, TypeError, KeyError):
        said = bytes(message.data[:60]).decode("utf-8", "replace")
        raise InputError(f"{where}: {said!r} is no number, list of numbers or {{'data': …}}") from None
