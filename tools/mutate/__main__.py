"""Command line: draws faults, plants each in a copy of the project, and lists which ones the quick tests notice.

    python -m pytest -p tools.mutate.reach --reach out/reach.json          # once: which tests run which functions
    python -m tools.mutate --count 40 --seed 1 --reach out/reach.json --markdown out/mutate.md
    python -m tools.mutate --count 40 --seed 1 --nearest 4                 # only the four nearest files: a lower bound
    python -m tools.mutate --count 40 --seed 1 --list                      # which faults they are
    python -m tools.mutate --count 40 --seed 1 --only 3 17                 # again, after a test was added
    python -m tools.mutate --count 40 --seed 1 --forks --tests tests.json  # {"3": ["tests/x.py::test_y", ...], ...}

Tests run in sessions, the nearest to the fault first (see `tools.mutate.choose`), until one fails; a test that fails
counts only if it passes without the fault. With a map those run that reach the fault's function, up to `--seconds` of
them; without one, all files that import its module. The table is written after each fault, so a run may be stopped and
taken up again with `--only`. Exit code 1 if fewer than `--bar` of the faults are caught.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.mutate.choose import ImportGraph, Reach
from tools.mutate.draw import draw
from tools.mutate.trial import Scratch, Verdict

ROOT = Path(__file__).resolve().parents[2]
_AT_ONCE = 4
"""Test files that share a session: half of a short file's time goes into starting one."""


def to_markdown(verdicts: Sequence[tuple[int, Verdict]]) -> str:
    """A table of what became of each fault, and the share that was caught."""
    lines = ["| # | fault | kind | result | by | tests | s |", "|---|---|---|---|---|---|---|"]
    for number, v in verdicts:
        place = f"`{v.fault.path}:{v.fault.line}`"
        change = " → ".join(
            f"`{' '.join(part.split())}`".replace("|", "\\|") for part in (v.fault.before, v.fault.after)
        )
        lines.append(
            f"| {number} | {place} {change} | {v.fault.kind} | {v.result} | {v.by} | {v.tests} | {v.seconds:.0f} |"
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
    parser.add_argument("--reach", type=Path, metavar="FILE", help="what `tools.mutate.reach` wrote")
    parser.add_argument("--seconds", type=float, default=300.0, help="of tests per fault, with --reach")
    parser.add_argument("--tests", type=Path, metavar="FILE", help="tests by number of the fault, as JSON; no others")
    parser.add_argument("--forks", action="store_true", help="run sessions in forks, which begin at once")
    parser.add_argument("--only", type=int, nargs="+", metavar="#", help="only these of the faults")
    parser.add_argument("--limit", type=float, default=900.0, metavar="S", help="a session that takes longer hangs")
    parser.add_argument("--bar", type=float, default=0.85, help="share that must be caught")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="print the faults and the nearest tests, and stop")
    options = parser.parse_args()
    drawn = list(enumerate(draw(ROOT, options.package, options.count, options.seed, options.within), start=1))
    graph = ImportGraph(ROOT, options.package)
    reach = Reach(options.reach, ROOT, graph) if options.reach is not None else None
    told = {} if options.tests is None else json.loads(options.tests.read_text(encoding="utf-8"))
    wanted = options.only or [int(number) for number in told]
    chosen = [(number, fault) for number, fault in drawn if not wanted or number in wanted]
    if options.list:
        for number, fault in chosen:
            print(f"{number:3d} {fault}\n    {' '.join(graph.tests_for(fault.path)[: options.nearest or 6])}")
        return 0
    verdicts: list[tuple[int, Verdict]] = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(ROOT, Path(folder), limit=options.limit, forks=options.forks)
        for number, fault in chosen:
            near = graph.tests_for(fault.path)[: options.nearest]
            files = [near[first : first + _AT_ONCE] for first in range(0, len(near), _AT_ONCE)]
            measured = [] if reach is None else reach.sessions(fault, options.seconds)
            if str(number) in told:
                measured = [told[str(number)]]
            verdict = scratch.trial(fault, measured or files)
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
