"""The table of all models."""

from __future__ import annotations

from tools.zoo.compare import NEAR, Row

_HEAD = (
    "| model | contacts equal | qacc equal | unequal qacc, equal contacts | motion | wrong gradients | differences |"
)


def _line(row: Row) -> str:
    if row.failure and not row.states:
        return f"| {row.name} | | | | | | {row.failure} |"
    reasons = "; ".join(f"{reason} ({count})" for reason, count in row.reasons.most_common(6))
    gradients = "" if row.wrong_gradients is None else str(row.wrong_gradients)
    return (
        f"| {row.name} | {row.equal}/{row.touching} | {row.accelerations}/{row.states} | {row.given} "
        f"| {row.motion:.1e} | {gradients} | {'; '.join(filter(None, [reasons, row.failure]))} |"
    )


def to_markdown(rows: list[Row]) -> str:
    """The rows and a last line with the totals."""
    done = [row for row in rows if row.states]
    touching, states = sum(r.touching for r in done), sum(r.states for r in done)
    equal, accelerations = sum(r.equal for r in done), sum(r.accelerations for r in done)
    moved = [r for r in done if r.motion == r.motion]
    same = sum(r.motion <= NEAR for r in moved)
    total = (
        f"{len(done)} of {len(rows)} models; contacts equal in {equal}/{touching} states in contact "
        f"({100 * equal / max(touching, 1):.1f} %), accelerations in {accelerations}/{states} "
        f"({100 * accelerations / max(states, 1):.1f} %), motions in {same}/{len(moved)}"
    )
    return "\n".join([_HEAD, "|" + "---|" * 7, *map(_line, rows), "", total])
