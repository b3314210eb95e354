"""`warpsim panel`: derivatives known in closed form, exact beside ours and naive autodiff."""

from __future__ import annotations

import argparse

from warpsim.check.panel import CASES, run_panel
from warpsim.check.panel.table import count_off, format_lines


def run(arguments: argparse.Namespace) -> int:
    """Runs and prints the table."""
    lines = run_panel(CASES)
    print(format_lines(lines))
    text, off = count_off(lines)
    print(text)
    return 1 if off else 0
