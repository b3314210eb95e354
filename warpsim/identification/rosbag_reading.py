"""Recordings from ROS bags: a `.bag` file (ROS 1), the folder of a ROS 2 bag, or a folder of several of them.

Each bag is a recording, named after itself. What its topics become (NAME is the last part of a topic):

| message | channels |
|---|---|
| `sensor_msgs/JointState` | `joint:JOINT` and `joint_velocity:JOINT` for each name in it, as far as it has numbers |
| `geometry_msgs/Pose`, `PoseStamped` | `body_position:NAME` and `body_rotation:NAME` |
| `geometry_msgs/Transform`, `TransformStamped` | the same, under `child_frame_id` where there is one |
| `std_msgs/Float32`, `Float64`, their `MultiArray`s | `q`, `qd` and `controls` under these names, else `sensor:NAME` |

Topics of other messages are left out, with a note. A message was measured at its header's stamp, or without one when
it was recorded; how messages become samples: `warpsim.identification.topics`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.core.errors import InputError
from warpsim.identification.recordings import Recording
from warpsim.identification.topics import Messages, recording_of

_PLAIN = ("q", "qd", "controls")
_NUMBERS = tuple(f"std_msgs/msg/Float{bits}{many}" for bits in (32, 64) for many in ("", "MultiArray"))
_JOINTS = "sensor_msgs/msg/JointState"
_POSES = tuple(f"geometry_msgs/msg/{name}" for name in ("Pose", "PoseStamped", "Transform", "TransformStamped"))
READ_MESSAGES = (_JOINTS, *_POSES, *_NUMBERS)


@dataclass(frozen=True)
class RosLibrary:
    """What bags are read with.

    Attributes:
        reader: Of bags of both versions.
        error: What it raises for a bag that is none.
        types: Of messages in bags that do not hold their definitions.
    """

    reader: Callable[..., Any]
    error: type[Exception]
    types: Any


def is_bag(path: Path) -> bool:
    """Whether a path is one bag."""
    return (path.suffix == ".bag" and path.is_file()) or (path / "metadata.yaml").is_file()


def bags_in(path: Path) -> list[Path]:
    """The bags that a path stands for: itself, or those in the folder, by name."""
    if is_bag(path):
        return [path]
    found = sorted(inside for inside in path.iterdir() if is_bag(inside)) if path.is_dir() else []
    if not found:
        raise InputError(f"{path}: a folder with neither metadata.yaml (a ROS 2 bag) nor bags in it")
    return found


def read_bag(path: Path, library: RosLibrary, units: Mapping[str, str]) -> Recording:
    """Reads one bag.

    Args:
        path: A `.bag` file or a ROS 2 bag's folder.
        library: What to read it with.
        units: Of channels that are not in SI.
    """
    channels: dict[str, Messages] = {}
    counted: dict[str, int] = {}
    others: set[str] = set()
    try:
        with library.reader([path], default_typestore=library.types) as bag:
            for connection, recorded, raw in bag.messages():
                if connection.msgtype not in READ_MESSAGES:
                    others.add(f"{connection.topic} ({connection.msgtype})")
                    continue
                place = counted[connection.topic] = counted.get(connection.topic, -1) + 1
                message = bag.deserialize(raw, connection.msgtype)
                where = f"{path}, recording {path.stem!r}, topic {connection.topic!r}, message {place}"
                for channel, numbers in _channels(where, connection, message):
                    channels.setdefault(channel, []).append((_stamp(message) or recorded, numbers))
    except (library.error, OSError) as problem:
        raise InputError(f"{path}: not a readable bag: {problem or type(problem).__name__}") from None
    if not channels:
        seen = f"; it holds {', '.join(sorted(others))}" if others else ""
        raise InputError(f"{path}: no messages that are read ({', '.join(READ_MESSAGES)}){seen}")
    read = recording_of(str(path), path.stem, channels, units)
    notes = tuple(f"topic {topic} left out: no message that is read" for topic in sorted(others))
    return replace(read, notes=notes)


def _stamp(message: Any) -> int:
    """ns; 0 where a message has none."""
    header = getattr(message, "header", None)
    return 0 if header is None else 10**9 * int(header.stamp.sec) + int(header.stamp.nanosec)


def _channels(where: str, connection: Any, message: Any) -> Iterator[tuple[str, np.ndarray]]:
    """(channel, numbers) of a message."""
    name = connection.topic.strip("/").rpartition("/")[2]
    if connection.msgtype == _JOINTS:
        yield from _joints(where, message)
    elif connection.msgtype in _POSES:
        pose = getattr(message, "pose", getattr(message, "transform", message))
        body = getattr(message, "child_frame_id", "") or name
        moved = hasattr(pose, "translation")
        at, turned = (pose.translation, pose.rotation) if moved else (pose.position, pose.orientation)
        yield f"body_position:{body}", np.array([at.x, at.y, at.z], dtype=np.float64)
        yield f"body_rotation:{body}", np.array([turned.w, turned.x, turned.y, turned.z], dtype=np.float64)
    else:
        yield name if name in _PLAIN else f"sensor:{name}", np.atleast_1d(np.asarray(message.data, dtype=np.float64))


def _joints(where: str, message: Any) -> Iterator[tuple[str, np.ndarray]]:
    for channel, numbers in (("joint", message.position), ("joint_velocity", message.velocity)):
        if len(numbers) not in (0, len(message.name)):
            raise InputError(f"{where}: {len(numbers)} numbers for {len(message.name)} joints ({channel})")
        for joint, number in zip(message.name, numbers, strict=False):
            yield f"{channel}:{joint}", np.array([number], dtype=np.float64)
