"""`read_motion`: one world of a rollout saved as .npz, in the order of its scene."""

from __future__ import annotations

import tokenize
import zipfile
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from warpsim.core.errors import InputError
from warpsim.io.usd.motion import Motion
from warpsim.scene import Scene
from warpsim.scene.description import JOINT_DOF_SIZE, JOINT_Q_SIZE
from warpsim.scene.matters import matter_kind

_NEEDED = ("times", "q", "qd", "body_position", "body_rotation", "body_names", "joint_names")


def read_motion(path: str | PathLike[str], scene: Scene, *, world: int = 0) -> Motion:
    """Reads what `Trajectory.save` or `warpsim simulate -o` wrote.

    Args:
        path: The .npz file.
        scene: What was simulated.
        world: Which of the rollout's worlds.

    Raises:
        InputError: The file is damaged, lacks the bodies' poses, or is not of this scene.
    """
    target = Path(fspath(path))
    arrays = _load(target)
    missing = [name for name in _NEEDED if name not in arrays]
    if missing:
        raise InputError(
            f"{target} lacks {', '.join(missing)}; save a rollout with the outputs 'body_position' and 'body_rotation'"
        )
    bodies = _places(target, "body", arrays["body_names"], [body.name for body in scene.bodies])
    joints = _places(target, "joint", arrays["joint_names"], [joint.name for joint in scene.joints])
    shape = arrays["q"].shape
    if len(shape) != 3 or not 0 <= world < shape[1]:
        raise InputError(f"{target}: world {world} of {shape[1] if len(shape) > 1 else 0}")
    kinds = {joint.name: joint.kind for joint in scene.joints}
    saved = [kinds.get(str(name), "hinge") for name in arrays["joint_names"]]
    columns = [_columns([sizes[kind] for kind in saved], joints) for sizes in (JOINT_Q_SIZE, JOINT_DOF_SIZE)]
    try:
        motion = Motion(
            times=arrays["times"],
            q=arrays["q"][:, world, columns[0]],
            qd=arrays["qd"][:, world, columns[1]],
            positions=arrays["body_position"][:, world, bodies],
            rotations=arrays["body_rotation"][:, world, bodies],
        )
    except IndexError as error:
        raise InputError(f"{target}: its arrays do not fit together; save the rollout again") from error
    for matter in scene.matters:
        saved_states = {name: arrays.get(f"{matter.name}.{name}") for name in matter.initial}
        own = {name: values[:, world] for name, values in saved_states.items() if values is not None}
        if len(own) < len(saved_states):
            raise InputError(f"{target} lacks states of matter {matter.name!r}; save a rollout of this scene")
        motion.points = {**motion.points, **matter_kind(matter.kind).points(matter, own)}
    motion.check(scene)
    return motion


def _load(target: Path) -> dict[str, np.ndarray]:
    if not target.is_file():
        raise InputError(f"no file {str(target)!r}")
    try:
        with np.load(target, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, tokenize.TokenError) as error:
        raise InputError(f"{target}: it is damaged, or no .npz file; save the rollout again\n{error}") from error


def _places(target: Path, kind: str, saved: np.ndarray, wanted: list[str]) -> list[int]:
    known = {str(name): place for place, name in enumerate(saved.tolist())}
    for name in wanted:
        if name not in known:
            raise InputError(f"{target} is not a motion of this scene: it has no {kind} {name!r}")
    extra = set(known) - {"", *wanted}
    if extra:
        raise InputError(f"{target} is not a motion of this scene, which has no {kind} {min(extra)!r}")
    return [known[name] for name in wanted]


def _columns(sizes: list[int], joints: list[int]) -> list[int]:
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    return [column for joint in joints for column in range(starts[joint], starts[joint + 1])]
