"""Command line: `python -m tools.bench.peers [--markdown FILE] [--json FILE]`.

Makes one environment per set of packages under `--environments` when first needed, runs every peer on its cases, and
warpsim and MuJoCo on the same ones in the same run. A peer that cannot be installed or run is in the table with the
reason.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path

from tools.bench.__main__ import run_case
from tools.bench.cases import CASES
from tools.bench.peers.own import own_rows
from tools.bench.peers.peers import PEERS
from tools.bench.peers.run import ENVIRONMENTS, Row, run_peer
from tools.bench.peers.table import to_markdown
from tools.bench.report import add_files, environment, publish

_STEPS = 60


def main() -> int:
    """Parses the command line, runs everybody and writes the reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.peers", description=__doc__)
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS, help="where peers are installed")
    parser.add_argument("--only", nargs="*", help="names of peers")
    parser.add_argument("--repeats", type=int, default=5)
    add_files(parser)
    options = parser.parse_args()
    names = [peer.name for peer in PEERS]
    if unknown := [name for name in options.only or [] if name not in names]:
        parser.error(f"no peer {', '.join(unknown)}; peers: {'; '.join(names)}")
    chosen = [p for p in PEERS if options.only is None or p.name in options.only]
    rows: list[Row] = []
    for name in dict.fromkeys(name for peer in chosen for name in peer.cases):
        case = replace(CASES[name], steps=_STEPS)
        if not case.path.is_file():
            print(f"{name}: no {case.model} beside the project; skipped", file=sys.stderr)
            continue
        result = run_case(case, warmups=1, repeats=options.repeats)
        if result.failures:
            print(f"{name}: wrong results of {', '.join(result.failures)}; {result.invalid}", file=sys.stderr)
            return 1
        rows += own_rows(case, result)
        for peer in chosen:
            if name in peer.cases:
                rows.append(run_peer(peer, case, options.environments.resolve()))
                print(rows[-1], file=sys.stderr)
    text = to_markdown(rows, _STEPS)
    found = {"environment": environment("tools.bench.peers"), "rows": [asdict(row) for row in rows]}
    publish(options, text, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
