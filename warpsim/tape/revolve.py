"""Optimal placement of few checkpoints: binomial checkpointing (Griewank and Walther, "revolve", ACM TOMS 26, 2000).

`l` segments are to be reversed from a stored start, with `c` snapshots in all, that start included. To reverse the last
one its start must be reached again; how often segments are advanced in total depends on where snapshots are put. With
β(c, r) = C(c + r, c), no more than r advances per segment are needed as long as l ≤ β(c, r), and the least total is

    t(l, c) = r·l - β(c + 1, r - 1)          where β(c, r - 1) < l ≤ β(c, r).

It is reached by advancing m segments, storing there, reversing the l - m segments to the right with c - 1 snapshots,
then the m to the left with c again, for any m with

    β(c, r - 2) ≤ m ≤ β(c, r - 1)   and   β(c - 1, r - 1) ≤ l - m ≤ β(c - 1, r).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

from warpsim.core.errors import InputError


def advances(segments: int, snapshots: int) -> int:
    """t(l, c): how many segment advances the reversal takes, the recorded evaluations (one per segment) not counted."""
    _check(segments, snapshots)
    if snapshots == 1 or segments == 1:
        return segments * (segments - 1) // 2
    repeats = _repeats(segments, snapshots)
    return repeats * segments - comb(snapshots + repeats, snapshots + 1)


def first_advances(segments: int, snapshots: int) -> int:
    """How many of these advances are of the first segment: one for the whole, then those of each part to the left."""
    _check(segments, snapshots)
    count = 0
    while segments > 1:
        segments = split(segments, snapshots)
        count += 1
    return count


def split(segments: int, snapshots: int) -> int:
    """m: how far to advance from the stored start before the next snapshot (or, with none left, before recording)."""
    _check(segments, snapshots)
    if segments < 2:
        raise InputError("a single segment is recorded at once; there is nothing to advance")
    if snapshots == 1:
        return segments - 1
    if snapshots >= segments:
        return 1
    repeats = _repeats(segments, snapshots)
    fewest_left = comb(snapshots + repeats - 2, snapshots) if repeats > 1 else 1
    most_right = comb(snapshots - 1 + repeats, snapshots - 1)
    return max(fewest_left, segments - most_right)


def approach(stored: int, target: int, snapshots: int) -> Iterator[tuple[int, int, bool]]:
    """The way from the newest stored segment start to the start of `target`, storing where the optimum asks for it.

    Called for target = last … first, with `target` popped from the stack of snapshots after each, this is the whole
    reversal.

    Args:
        stored: Segment whose start the newest snapshot holds.
        target: Segment to be recorded next, ≥ `stored`.
        snapshots: How many snapshots may be used from `stored` on, that one included.

    Yields:
        (start, stop, store): advance segments start … stop - 1, then store the start of `stop` if so.
    """
    while stored < target:
        stop = stored + split(target - stored + 1, snapshots)
        store = snapshots > 1
        yield stored, stop, store
        stored = stop
        snapshots -= store


def _repeats(segments: int, snapshots: int) -> int:
    repeats = 1
    while comb(snapshots + repeats, snapshots) < segments:
        repeats += 1
    return repeats


def _check(segments: int, snapshots: int) -> None:
    if segments < 1 or snapshots < 1:
        raise InputError(f"needs at least one segment and one snapshot, not {segments} and {snapshots}")
