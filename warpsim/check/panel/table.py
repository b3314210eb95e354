"""A case of the panel, its lines, and the table they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A situation with known derivatives.

    Attributes:
        name: What it is.
        quantities: What is compared, in the order of the numbers below.
        exact: The true numbers.
        ours: Computes ours.
        naive: Computes those of plain autodiff of plain stepping; None: it would be the same thing.
        tolerance: By how much ours may be off, relative to the largest exact number: what the step leaves.
    """

    name: str
    quantities: tuple[str, ...]
    exact: tuple[float, ...]
    ours: Callable[[], Sequence[float]]
    naive: Callable[[], Sequence[float]] | None
    tolerance: float


@dataclass(frozen=True)
class Line:
    """One derivative: exact, ours and naive, and whether ours is within the case's tolerance."""

    case: str
    quantity: str
    exact: float
    ours: float
    naive: float | None
    ok: bool


def run_panel(cases: Iterable[Case]) -> list[Line]:
    """Computes all cases."""
    lines = []
    for case in cases:
        ours = [float(x) for x in case.ours()]
        naive = None if case.naive is None else [float(x) for x in case.naive()]
        scale = max(abs(x) for x in case.exact)
        for i, (quantity, exact) in enumerate(zip(case.quantities, case.exact, strict=True)):
            ok = abs(ours[i] - exact) <= case.tolerance * scale
            lines.append(Line(case.name, quantity, exact, ours[i], None if naive is None else naive[i], ok))
    return lines


def format_lines(lines: Sequence[Line]) -> str:
    """The table as text."""
    width = max(len(line.case) for line in lines)
    wide = max(len(line.quantity) for line in lines)
    head = f"{'case':<{width}}  {'derivative':<{wide}}  {'exact':>12}  {'ours':>12}  {'naive autodiff':>14}"
    rows = [head]
    for line in lines:
        naive = "–" if line.naive is None else f"{line.naive:.6g}"
        mark = "" if line.ok else "  OFF"
        rows.append(
            f"{line.case:<{width}}  {line.quantity:<{wide}}  {line.exact:>12.6g}  {line.ours:>12.6g}  {naive:>14}{mark}"
        )
    return "\n".join(rows)


def count_off(lines: Sequence[Line]) -> tuple[str, int]:
    """How many derivatives of ours are off, in words and as a number."""
    off = sum(not line.ok for line in lines)
    return f"{len(lines) - off} of {len(lines)} within what the time step explains", off
