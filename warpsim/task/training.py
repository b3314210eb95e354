"""`Training`: what a policy is to learn, made in Python or read from a `WarpsimTraining` prim."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from pxr import Usd

from warpsim.core.errors import InputError, TaskError, unknown_name
from warpsim.io.usd.reader import open_stage
from warpsim.scene import Scene
from warpsim.task.prims import TaskPrim, TaskStage
from warpsim.task.read_terms import TERMS, read_term
from warpsim.task.rewards import ActionCost, Alive, Fall, JointStops, Progress, Reward, TermCost, Upright

TRAINING = "WarpsimTraining"


@dataclass(frozen=True)
class StartSpread:
    """How far states at the start of episodes are from the scene's own; SI.

    Attributes:
        position: Largest move of a coordinate along its dof.
        velocity: Standard deviation of every velocity.
        kick: Standard deviation of what is added to the velocities of hinges and slides when a window begins.
        pose: (nq,) instead of the scene's own coordinates; None: those.
    """

    position: float = 0.0
    velocity: float = 0.0
    kick: float = 0.0
    pose: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Randomized:
    """An attribute that differs from world to world, by a share of its value or by so much in its own unit."""

    attribute: str
    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True)
class Training:
    """What a policy is to learn; lengths of time in s. `SHAC` tells what the settings mean.

    Attributes:
        rewards: What a control is rewarded for; they add up.
        falls: What ends an episode.
        starts: Where episodes begin.
        randomized: What differs from world to world.
        senses: What the policy sees, from `warpsim.policy.senses`.
        hidden: Widths of the hidden layers.
        activation: Of the hidden layers.
        worlds: Copies of the scene.
        period: From control to control.
        window: Differentiated at a time.
        episode: After which a world begins anew.
        discount: What a reward one control later counts.
        rate: Adam's learning rate for the policy.
        rate_decay: Updates n₀ of the rates' fall with 1/√(1 + n/n₀); None: they do not fall.
        world_clip: Largest gradient of a world in multiples of the median; None: any.
        warm_up: Updates at the beginning that fit the critic alone.
        retry: Share of the worlds that failed which go back by two windows instead of to a start.
        seconds: Processor time; None: any.
        updates: Most updates; None: any number.
        evaluate_every: Updates from evaluation to evaluation.
        seed: Of everything random.
        name: The prim's path.
    """

    rewards: tuple[Reward, ...]
    falls: tuple[Fall, ...] = ()
    starts: StartSpread = field(default_factory=StartSpread)
    randomized: tuple[Randomized, ...] = ()
    senses: tuple[str, ...] = ("joint_position", "joint_velocity")
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "elu"
    worlds: int = 64
    period: float = 0.02
    window: float = 0.32
    episode: float = 10.0
    discount: float = 0.99
    rate: float = 2e-3
    rate_decay: float | None = None
    world_clip: float | None = 3.0
    warm_up: int = 0
    retry: float = 0.0
    seconds: float | None = 240.0
    updates: int | None = None
    evaluate_every: int = 100
    seed: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        if not self.rewards:
            raise InputError("nothing is rewarded: add a reward such as WarpsimProgress")
        if not 0.0 <= self.discount < 1.0:
            raise InputError(f"discount is {self.discount:g}; it must be 0 or more and below 1")
        if self.seconds is None and self.updates is None:
            raise InputError("the training has no end: give seconds or updates")
        if self.seconds is not None and not self.seconds > 0.0:
            raise InputError(f"seconds is {self.seconds:g}; give processor time above 0, or leave it out")
        if self.updates is not None and self.updates < 1:
            raise InputError(f"updates is {self.updates}; give 1 or more, or leave it out")
        if not 0.0 <= self.retry <= 1.0:
            raise InputError(f"retry is {self.retry:g}; it is a share of the worlds that failed, from 0 to 1")
        if self.worlds < 1 or self.evaluate_every < 1:
            raise InputError(f"worlds={self.worlds} and evaluateEvery={self.evaluate_every}; give 1 or more")


def training_paths(stage: Usd.Stage) -> list[str]:
    """Paths of all trainings on a stage, in order."""
    return [str(prim.GetPath()) for prim in stage.Traverse() if prim.GetTypeName() == TRAINING]


def read_training(source: str | PathLike[str] | Usd.Stage, scene: Scene, path: str | None = None) -> Training:
    """Reads what is to be trained.

    Args:
        source: The file or stage.
        scene: As read from it.
        path: Which training; None: the only one.

    Raises:
        TaskError: There is none, or not just one; or a prim of it is wrong: the message begins with its path.
    """
    stage = open_stage(source)
    known, place = training_paths(stage), stage.GetRootLayer().identifier
    if path is None:
        if len(known) != 1:
            told = (
                f"several, {', '.join(known)}; choose one with --training"
                if known
                else "none; docs/policies.md shows one"
            )
            raise TaskError(f"{place}: a {TRAINING} prim says what is to be trained, and there are {told}")
        path = known[0]
    if path not in known:
        raise TaskError(f"{place}: {unknown_name('training', path, known)}")
    try:
        return _read(TaskStage(stage, scene), stage.GetPrimAtPath(path))
    except InputError as error:
        raise TaskError(str(error) if str(error).startswith("/") else f"{path}: {error}") from error


def _read(context: TaskStage, prim: Usd.Prim) -> Training:
    own = TaskPrim(context, prim)
    found: dict[str, list[Any]] = {"rewards": [], "falls": [], "starts": [], "randomized": []}
    for child in prim.GetChildren():
        item = TaskPrim(context, child)
        if item.kind not in _PARTS:
            raise item.fail(f"a {item.kind} cannot be part of a training; move it out of {own.path}")
        group, read = _PARTS[item.kind]
        found[group].append(_guarded(item, read))
    if len(found["starts"]) > 1:
        raise own.fail("has several WarpsimStarts; one says where episodes begin")
    return Training(
        rewards=tuple(found["rewards"]),
        falls=tuple(found["falls"]),
        starts=found["starts"][0] if found["starts"] else StartSpread(),
        randomized=tuple(found["randomized"]),
        senses=tuple(_snake(str(sense)) for sense in own.get("senses")),
        hidden=tuple(int(width) for width in own.get("hidden")),
        activation=str(own.get("activation")),
        worlds=int(own.get("worlds")),
        period=own.number("period"),
        window=own.number("window"),
        episode=own.number("episode"),
        discount=own.number("discount"),
        rate=own.number("learningRate"),
        rate_decay=own.number("rateDecay") or None,
        world_clip=own.number("worldClip") or None,
        warm_up=int(own.get("warmUp")),
        retry=own.number("retry"),
        seconds=own.number("seconds") or None,
        updates=int(own.get("updates")) or None,
        evaluate_every=int(own.get("evaluateEvery")),
        seed=int(own.get("seed")),
        name=own.path,
    )


def _guarded(item: TaskPrim, read: Callable[[TaskPrim], Any]) -> Any:
    """Reads a prim; puts its path before errors that do not name it."""
    try:
        return read(item)
    except InputError as error:
        raise error if str(error).startswith(item.path) else item.fail(str(error)) from error


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def _progress(item: TaskPrim) -> Progress:
    length = item.context.units.length
    along = item.context.vector(item.get("direction"), 1.0)
    if not np.linalg.norm(along) > 0:
        raise item.fail("direction is zero; give one")
    return Progress(item.moving("subject"), along, item.optional("atMost", length), item.number("weight"))


def _fall(item: TaskPrim) -> Fall:
    low, high = (item.optional(name, item.context.units.length) for name in ("minimum", "maximum"))
    if low is None and high is None:
        raise item.fail("needs a minimum or a maximum of the height")
    margin = item.number("margin", item.context.units.length)
    return Fall(item.moving("subject"), low, high, margin, item.number("weight"), item.number("ahead"))


def _starts(item: TaskPrim) -> StartSpread:
    made = StartSpread(item.number("position"), item.number("velocity"), item.number("kick"))
    if min(made.position, made.velocity, made.kick) < 0:
        raise item.fail("position, velocity and kick say how far; none may be negative")
    return made


def _randomized(item: TaskPrim) -> Randomized:
    paths = item.targets("attribute")
    if len(paths) != 1 or not paths[0].IsPropertyPath():
        raise item.fail("attribute must target one attribute, e.g. </World/Trunk.physics:mass>")
    return Randomized(str(paths[0]), item.number("relative"), item.number("absolute"))


_PARTS: dict[str, tuple[str, Callable[[TaskPrim], Any]]] = {
    "WarpsimProgress": ("rewards", _progress),
    "WarpsimAlive": ("rewards", lambda item: Alive(item.number("weight"))),
    "WarpsimUpright": ("rewards", lambda item: Upright(item.moving("subject"), item.number("weight"))),
    "WarpsimActionCost": ("rewards", lambda item: ActionCost(item.number("weight"))),
    "WarpsimJointStops": ("rewards", lambda item: JointStops(item.number("margin"), item.number("weight"))),
    "WarpsimFall": ("falls", _fall),
    "WarpsimStarts": ("starts", _starts),
    "WarpsimRandomized": ("randomized", _randomized),
    **{kind: ("rewards", lambda item: TermCost(read_term(item, ())[0])) for kind in TERMS if kind != "WarpsimDuration"},
}
"""Type → what it is a part of, and how to read it."""
