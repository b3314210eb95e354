"""Command line: `python -m tools.bench [case …]`, or `--compare before.json after.json` (or two folders of such).

Exit code 1 if a result was wrong, or if a comparison finds something slower beyond noise.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

from tools.bench import mujoco_side, warpsim_side
from tools.bench.cases import CASES, Case
from tools.bench.compare import compare, to_text
from tools.bench.report import Measurement, Result, add_files, publish, to_json, to_markdown
from tools.bench.timing import measure


def run_case(case: Case, *, warmups: int, repeats: int) -> Result:
    """Times MuJoCo and warpsim on one case, alternately, and compares their final states."""
    if not case.path.is_file():
        return Result(case, skipped=f"no {case.model} beside the project")
    torch.set_num_threads(1)  # its others wait for work in a loop, which the clock would count to whoever comes next
    model = mujoco_side.load(case)
    inputs = mujoco_side.make_inputs(case, model)
    workloads = [*mujoco_side.workloads(case, model, inputs), *warpsim_side.workloads(case, inputs)]
    timings = measure(workloads, warmups=warmups, repeats=repeats)

    expected = workloads[0].final_state()
    scale = np.max(np.abs(expected))
    measurements = [
        Measurement(
            w.label,
            timings[w.label],
            float(np.max(np.abs(w.final_state() - expected)) / scale),
            None if w.gradient_error is None else w.gradient_error(),
        )
        for w in workloads
    ]
    contacts = mujoco_side.count_contacts(model, inputs)
    return Result(case, contacts, measurements, invalid=mujoco_side.what_is_wrong(case, model, inputs, expected))


def main() -> int:
    """Parses the command line, runs the cases and writes the reports."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case", help="default: all; see --list")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--warmups", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    add_files(parser)
    parser.add_argument(
        "--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="two files of --json, or folders of several"
    )
    options = parser.parse_args()
    if unknown := [name for name in options.cases if name not in CASES]:
        parser.error(f"no case {', '.join(unknown)}; cases: {', '.join(CASES)}")
    if options.compare:
        changes = compare(*options.compare)
        print(to_text(changes))
        return int(any(change.verdict == "slower" for change in changes))
    if options.list:
        for case in CASES.values():
            print(f"{case.name}: {case.model}, {case.worlds} worlds, {case.steps} steps, {case.integrator}")
        return 0

    names = options.cases or list(CASES)
    results = [run_case(CASES[name], warmups=options.warmups, repeats=options.repeats) for name in names]
    text = to_markdown(results)
    publish(options, text, to_json(results))
    wrong = [f"{r.case.name}: {label} {r.invalid}".strip() for r in results for label in r.failures]
    if wrong:
        print("wrong results, times not valid: " + "; ".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
