"""Command line: draws faults, plants each in a copy of the project, and lists which ones the quick tests notice.

    python -m tools.mutate --count 40 --seed 1 --markdown out/mutate.md    # every test that reaches the fault's module
    python -m tools.mutate --count 40 --seed 1 --nearest 4                 # only the four nearest files: a lower bound
    python -m tools.mutate --count 40 --seed 1 --list                      # which faults they are
    python -m tools.mutate --count 40 --seed 1 --only 3 17                 # again, after a test was added

Test files run a few at a time, the nearest to the fault first (see `tools.mutate.choose`), until a test fails; a test
that fails counts only if it passes without the fault. The table is written after each fault, so a run may be stopped
and taken up again with `--only`. Exit code 1 if fewer than `--bar` of the faults are caught.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.mutate.choose import ImportGraph
from tools.mutate.draw import draw
from tools.mutate.trial import Scratch, Verdict

ROOT = Path(__file__).resolve().parents[2]


def to_markdown(verdicts: Sequence[tuple[int, Verdict]]) -> str:
    """A table of what became of each fault, and the share that was caught."""
    lines = ["| # | fault | kind | result | by | test files | s |", "|---|---|---|---|---|---|---|"]
    for number, v in verdicts:
        place = f"`{v.fault.path}:{v.fault.line}`"
        change = " → ".join(
            f"`{' '.join(part.split())}`".replace("|", "\\|") for part in (v.fault.before, v.fault.after)
        )
        lines.append(
            f"| {number} | {place} {change} | {v.fault.kind} | {v.result} | {v.by} | {v.files} | {v.seconds:.0f} |"
        )
    caught = sum(v.result == "caught" for _, v in verdicts)
    lines += ["", f"{caught} of {len(verdicts)} caught."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Draws, plants, tells."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="faults to draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", default="warpsim", help="folder with the code")
    parser.add_argument("--within", default="", metavar="PATH", help="only files whose path begins so")
    parser.add_argument("--nearest", type=int, default=None, metavar="N", help="only the N nearest test files")
    parser.add_argument("--only", type=int, nargs="+", metavar="#", help="only these of the faults")
    parser.add_argument("--limit", type=float, default=900.0, metavar="S", help="a test file that takes longer hangs")
    parser.add_argument("--bar", type=float, default=0.85, help="share that must be caught")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="print the faults and the nearest tests, and stop")
    options = parser.parse_args()
    drawn = list(enumerate(draw(ROOT, options.package, options.count, options.seed, options.within), start=1))
    graph = ImportGraph(ROOT, options.package)
    chosen = [(number, fault) for number, fault in drawn if not options.only or number in options.only]
    if options.list:
        for number, fault in chosen:
            print(f"{number:3d} {fault}\n    {' '.join(graph.tests_for(fault.path)[: options.nearest or 6])}")
        return 0
    verdicts: list[tuple[int, Verdict]] = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(ROOT, Path(folder), limit=options.limit)
        for number, fault in chosen:
            verdict = scratch.trial(fault, graph.tests_for(fault.path)[: options.nearest])
            verdicts.append((number, verdict))
            print(f"{number:3d} {verdict.result:8s} {fault}  {verdict.by} ({verdict.seconds:.0f} s)", flush=True)
            if options.markdown is not None:
                options.markdown.parent.mkdir(parents=True, exist_ok=True)
                options.markdown.write_text(to_markdown(verdicts), encoding="utf-8")
    print(to_markdown(verdicts))
    caught = sum(verdict.result == "caught" for _, verdict in verdicts)
    return int(caught < options.bar * len(verdicts))


if __name__ == "__main__":
    sys.exit(main())
