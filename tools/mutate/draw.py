"""Which faults are planted: drawn by a seed, spread evenly over packages and over kinds."""

from __future__ import annotations

import random
from pathlib import Path

from tools.mutate.faults import Fault, faults_of, parses


def draw(root: Path, package: str, count: int, seed: int, within: str = "") -> list[Fault]:
    """Draws faults: from each package in turn a kind, of that kind a file, of that file a place.

    Args:
        root: Of the project.
        package: The folder below it that holds the code; every folder of modules in it counts as a package.
        count: How many; fewer where there are fewer.
        seed: The same seed and code draw the same faults.
        within: Only files whose path begins so.
    """
    rng = random.Random(seed)
    pools: dict[str, list[Fault]] = {}
    for file in sorted((root / package).rglob("*.py")):
        path = file.relative_to(root).as_posix()
        if path.startswith(within):
            pools.setdefault(file.parent.as_posix(), []).extend(faults_of(path, file.read_text(encoding="utf-8")))
    turns = sorted(folder for folder, pool in pools.items() if pool)
    rng.shuffle(turns)
    drawn: list[Fault] = []
    while turns and len(drawn) < count:
        for folder in list(turns):
            pool = pools[folder]
            for field in ("kind", "path"):
                chosen = rng.choice(sorted({getattr(fault, field) for fault in pool}))
                pool = [fault for fault in pool if getattr(fault, field) == chosen]
            fault = rng.choice(pool)
            if parses(fault.apply((root / fault.path).read_text(encoding="utf-8"))):
                drawn.append(fault)
            pools[folder] = [other for other in pools[folder] if other.line != fault.line or other.path != fault.path]
            if not pools[folder]:
                turns.remove(folder)
            if len(drawn) == count:
                break
    return drawn
