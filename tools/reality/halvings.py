"""Whether intervals are true on real tosses: `python -m tools.reality.halvings tosses.npz [--seeds 0 1 …]`.

The training tosses of a split are halved at random, both halves fitted, and each value compared with the other half's.
Two estimates that are equally sure differ by √2 as much as one from the truth: a true 95 % interval of one holds the
other in 83 % of cases, and √(h₁² + h₂²) around one in 95 %, as does the interval in which a fit says that another set's
value is to be expected. All three shares are told. Fits are of `PLAIN_SCENE`, softened to the end.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import warpsim as ws
from tools.reality.protocol import PLAIN_SCENE, SOFTENED, plain_parameters, split
from warpsim.core.files import write_text
from warpsim.identification import IdentifiedScene, Recording, read_recordings


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="tosses.npz")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)), help="one halving each")
    parser.add_argument("--split", type=int, default=0, help="seed of the split whose training tosses are halved")
    parser.add_argument("--iterations", type=int, default=6, help="at most, per stage")
    parser.add_argument("--spread", type=float, default=0.0, help="of the cloud over which predictions are averaged")
    parser.add_argument("--bootstrap", type=int, default=0, help="fits of resampled tosses per interval; 0: none")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    recordings = read_recordings(arguments.data)
    train, _ = split(arguments.split, len(recordings))
    asked = {key: getattr(arguments, key) for key in ("iterations", "spread", "bootstrap")}
    options = {**SOFTENED, "tolerance": 1e-4, **asked}
    rows = []
    for seed in arguments.seeds:
        rows.append(halving(recordings, train, seed, options))
        print(f"halving {seed}: {rows[-1]['held']} of {rows[-1]['known']}", flush=True)
    print(summary(rows))
    if arguments.json:
        write_text(arguments.json, json.dumps({"format": "warpsim halvings", "rows": rows}, indent=1))


def halving(recordings: list[Recording], tosses: np.ndarray, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Both halves' values and intervals, and how many hold the other's."""
    order = np.random.default_rng(seed).permutation(tosses)
    first, second = (_fit(recordings, half, options) for half in np.split(order, 2))
    return compared(first, second)


def _fit(recordings: list[Recording], half: np.ndarray, options: dict[str, Any]) -> IdentifiedScene:
    used = [recordings[i] for i in half]
    return ws.identify(used, PLAIN_SCENE, plain_parameters(), validation=0.0, check=False, **options)


def compared(first: IdentifiedScene, second: IdentifiedScene) -> dict[str, Any]:
    """What two fits say of each other's values; values at a bound have no interval and are counted apart."""
    a, b = first.uncertainty, second.uncertainty
    known = a.determined & b.determined
    apart = np.abs(first.values - second.values)
    return dict(
        names=list(first.names),
        known=int(2 * known.sum()),
        held=int((apart <= a.half_width)[known].sum() + (apart <= b.half_width)[known].sum()),
        repeated=int((apart <= a.repeat_half_width)[known].sum() + (apart <= b.repeat_half_width)[known].sum()),
        held_by_both=int(2 * (apart <= np.hypot(a.half_width, b.half_width))[known].sum()),
        by_name={
            name: [float(apart[i]), float(a.half_width[i]), float(b.half_width[i])]
            for i, name in enumerate(first.names)
            if known[i]
        },
        at_bound=[name for i, name in enumerate(first.names) if not known[i]],
    )


def summary(rows: list[dict[str, Any]]) -> str:
    """Shares over all halvings."""
    known = sum(row["known"] for row in rows)
    plain, repeated, joint = (
        100 * sum(row[key] for row in rows) / max(known, 1) for key in ("held", "repeated", "held_by_both")
    )
    return (
        f"{len(rows)} halvings, {known} intervals: {plain:.1f} % of the true value's hold the other half's, "
        f"{repeated:.1f} % of those for another set's value do, {joint:.1f} % with both halves' widths; "
        f"without an interval: {sorted({n for row in rows for n in row['at_bound']})}"
    )


if __name__ == "__main__":
    main()
