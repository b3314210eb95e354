"""The peers' rows as Markdown."""

from __future__ import annotations

from tools.bench.peers.run import Row
from tools.bench.report import environment


def to_markdown(rows: list[Row], steps: int) -> str:
    """The table; cases are compared with warpsim's gradient per simulated second."""
    here = environment("tools.bench.peers")
    lines = [
        f"`{here['command']}`",
        "",
        f"{here['processor']}, one core of {here['cores']}; {steps} steps, one world, float64 where a system has it.",
        "Processor time, the best of several. *Gradient*: forward and backward of a linear function of the final",
        "state, by all controls.",
        "*Error*: against central differences of the system's own forward pass, the best of five step lengths; none",
        "where gradient or differences are not finite. *First call*: building the case, first forward pass and first",
        "gradient, in the longest run, which is the one that compiled (all but MuJoCo, Nimble and Pinocchio compile).",
        "",
        "| case | system | step, ms | forward, µs | gradient, µs | per simulated second, ms | × warpsim | error "
        "| memory per step, kB | first call, s | note |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    own = {row.case: row for row in rows if row.system == "warpsim"}
    lines += ["| " + " | ".join(_cells(row, own.get(row.case))) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def per_simulated_second(row: Row | None) -> float | None:
    """ms of a gradient for each second that is simulated."""
    if row is None or row.gradient is None or not row.timestep:
        return None
    return 1e-3 * row.gradient / row.timestep


def _cells(row: Row, own: Row | None) -> list[str]:
    second, reference = per_simulated_second(row), per_simulated_second(own)
    times = None if second is None or reference is None else second / reference
    named = ", ".join(f"{name} {version}" for name, version in row.versions.items())
    return [
        row.case,
        f"{row.system} ({named})" if named else row.system,
        _number(row.timestep, ".3g", 1e3),
        _number(row.forward, ".0f"),
        _number(row.gradient, ".0f"),
        _number(second, ".1f"),
        _number(times, ".1f"),
        _number(row.error, ".0e"),
        _number(row.memory, ".2f", 1e-3),
        _number(row.first_call, ".1f"),
        row.note,
    ]


def _number(value: float | None, text: str, unit: float = 1.0) -> str:
    return "–" if value is None else format(unit * value, text)
