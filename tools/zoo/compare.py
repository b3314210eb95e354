"""Where our contacts differ from MuJoCo's, pair by pair."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np

from tools.zoo import exact, ours, states
from tools.zoo.states import NEAR, State, Touch
from warpsim.core.errors import WarpsimError
from warpsim.io.mjcf import read_mjcf
from warpsim.scene import Scene


@dataclass
class Row:
    """One model's line in the table."""

    name: str
    states: int = 0
    touching: int = 0
    equal: int = 0
    """States in contact whose contact lists are equal."""
    explained: int = 0
    """States whose lists differ only by pairs where MuJoCo's normal ended short of its optimum and ours is at it."""
    accelerations: int = 0
    """States whose accelerations are equal."""
    solved: int = 0
    """States whose accelerations differ for that reason, or because MuJoCo's solver ended short of its optimum and ours
    is nearer to it."""
    given: int = 0
    """States with equal contacts whose accelerations are not: not collision's fault."""
    motion: float = float("nan")
    """Largest relative difference over the motion from MuJoCo's, at a tolerance at which it agrees with itself."""
    wrong_gradients: int | None = None
    reasons: Counter = field(default_factory=Counter)
    """Why contact lists differ: pair of kinds and difference → states."""
    details: list[str] = field(default_factory=list)
    """One line per pair of every unequal state."""
    failure: str = ""


def _by_pair(contacts: list[Touch]) -> dict[tuple[int, int], list[Touch]]:
    pairs = defaultdict(list)
    for touch in contacts:
        pairs[touch.pair].append(touch)
    return pairs


def _apart(mine: list[Touch], theirs: list[Touch]) -> dict[str, float]:
    """Largest differences between contact lists of one pair of equal length, matched by nearest points."""
    left, worst = list(mine), {"point": 0.0, "distance": 0.0, "normal": 0.0}
    for touch in theirs:
        nearest = min(range(len(left)), key=lambda k: float(np.abs(left[k].point - touch.point).max()))
        other = left.pop(nearest)
        worst["point"] = max(worst["point"], float(np.abs(other.point - touch.point).max()))
        worst["distance"] = max(worst["distance"], abs(other.distance - touch.distance))
        worst["normal"] = max(worst["normal"], float(np.abs(other.normal - touch.normal).max()))
    return worst


def _far_apart(mine: list[Touch], theirs: list[Touch]) -> str:
    """Which differences count; "" if none does."""
    worst = _apart(mine, theirs).items()
    return ", ".join(f"{name} {10 ** np.ceil(np.log10(value)):.0e}" for name, value in worst if value > NEAR)


def _nearly_equal(mine: list[Touch], theirs: list[Touch]) -> str:
    """How far equal lists are apart: accelerations of stiff contacts show more than the lists do."""
    a, b = _by_pair(mine), _by_pair(theirs)
    worst = [_apart(a[pair], b[pair]) for pair in b]
    return ", ".join(f"{name} {max(w[name] for w in worst):.0e}" for name in ("point", "distance", "normal") if worst)


@dataclass(frozen=True)
class Difference:
    """A pair of shapes whose contacts differ."""

    mine: list[Touch]
    theirs: list[Touch]
    reason: str
    """Kinds, and counts (ours/MuJoCo's) or what is apart."""


def differences(scene: Scene, mine: list[Touch], theirs: list[Touch]) -> list[Difference]:
    """The pairs of shapes whose contacts differ."""
    found = []
    a, b = _by_pair(mine), _by_pair(theirs)
    for pair in sorted({*a, *b}):
        kinds = "–".join(sorted(scene.shapes[i].kind for i in pair))
        left, right = a.get(pair, []), b.get(pair, [])
        if len(left) != len(right):
            found.append(Difference(left, right, f"{kinds}: {len(left)}/{len(right)} points"))
        elif apart := _far_apart(left, right):
            found.append(Difference(left, right, f"{kinds}: {apart}"))
    return found


def _same(mine: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.abs(mine - theirs).max(initial=0.0) <= NEAR * max(1.0, float(np.abs(theirs).max(initial=0.0))))


def _compare_states(row: Row, scene: Scene, model: mujoco.MjModel, sample: list[State]) -> None:
    qacc, contacts = ours.evaluate(scene, sample)
    row.states = len(sample)
    for number, (state, acceleration, touches) in enumerate(zip(sample, qacc, contacts, strict=True)):
        apart = differences(scene, touches, state.contacts)
        same = _same(acceleration, state.qacc)
        row.accelerations += same
        row.reasons.update({d.reason for d in apart})
        if state.contacts or touches:
            row.touching += 1
            row.equal += not apart
        row.given += not apart and not same
        if not apart and same:
            continue
        data = exact.place(model, state)
        best = [exact.at_the_optimum(model, data, d.mine, d.theirs) for d in apart]
        row.explained += bool(apart) and all(best)
        if apart:
            row.solved += all(best) and not same
        else:
            here, there = (exact.residual(model, data, a) for a in (acceleration, state.qacc))
            row.solved += here <= there
            row.details.append(
                f"state {number}: accelerations; residual {here:.1e} N, MuJoCo's {there:.1e} N; "
                f"contacts apart by {_nearly_equal(touches, state.contacts) or 'nothing'}"
            )
        for d, ours_is_best in zip(apart, best, strict=True):
            pair = (d.mine or d.theirs)[0].pair
            names = "–".join(scene.shapes[i].name for i in pair)
            note = ", ours at the optimum" if ours_is_best else ""
            row.details.append(f"state {number}: {names}, {d.reason}{note}")


def compare(path: Path, *, count: int = 28, seed: int = 0, steps: int = 200, gradients: bool = True) -> Row:
    """All comparisons of one model; what fails is said in the row."""
    row = Row("/".join(path.parts[-2:]))
    try:
        scene, model = read_mjcf(path), states.load_exact(path)
        sample = states.random_states(model, count, seed)
        _compare_states(row, scene, model, sample)
        if steps:
            start = next((s for s in sample if s.contacts), sample[0])
            mine = ours.motion(scene, start, steps)
            row.motion = states.apart_by(mine, states.motion(model, start, steps))
        if gradients:
            row.wrong_gradients = ours.wrong_gradients(scene, seed)
    except (WarpsimError, ValueError) as error:
        row.failure = str(error).splitlines()[0][:160]
    return row
