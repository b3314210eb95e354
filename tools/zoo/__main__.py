"""Command line: `python -m tools.zoo FOLDER [--markdown table.md] [--only NAME …]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.zoo.compare import compare
from tools.zoo.files import model_files
from tools.zoo.report import to_markdown


def main() -> int:
    """Compares every model of a folder; exit code 1 if one failed to load or run."""
    parser = argparse.ArgumentParser(prog="python -m tools.zoo", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="parts of the paths to take")
    parser.add_argument("--states", type=int, default=28)
    parser.add_argument("--steps", type=int, default=200, help="of the motion; 0: none")
    parser.add_argument("--no-gradients", action="store_true")
    parser.add_argument("--details", action="store_true", help="a line for every pair that differs in a state")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    options = parser.parse_args()
    rows = []
    for path in model_files(options.folder, options.only):
        row = compare(
            path,
            count=options.states,
            seed=options.seed,
            steps=options.steps,
            gradients=not options.no_gradients,
        )
        rows.append(row)
        print(to_markdown([row]).splitlines()[2], flush=True)
        if options.details:
            print(*row.details, sep="\n", flush=True)
    text = to_markdown(rows)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    print(text.splitlines()[-1] if rows else f"no models in {options.folder}")
    return int(not rows or any(row.failure for row in rows))


if __name__ == "__main__":
    sys.exit(main())
