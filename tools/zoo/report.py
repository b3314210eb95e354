"""The table of all models."""

from __future__ import annotations

from collections import Counter

from tools.zoo.compare import Row
from tools.zoo.states import NEAR

_HEAD = (
    "| model | contacts equal | MuJoCo off its optimum | qacc equal | MuJoCo off its optimum "
    "| unequal qacc, equal contacts | motion | wrong gradients | differences |"
)


def _line(row: Row) -> str:
    if row.failure and not row.states:
        return f"| {row.name} | | | | | | | | {row.failure} |"
    reasons = "; ".join(f"{reason} ({count})" for reason, count in row.reasons.most_common(6))
    gradients = "" if row.wrong_gradients is None else str(row.wrong_gradients)
    remarks = "; ".join(filter(None, [reasons, row.failure]))
    return (
        f"| {row.name} | {row.equal}/{row.touching} | {row.explained} | {row.accelerations}/{row.states} "
        f"| {row.solved} | {row.given} | {row.motion:.1e} | {gradients} | {remarks} |"
    )


def to_markdown(rows: list[Row]) -> str:
    """The rows and a last line with the totals."""
    done = [row for row in rows if row.states]
    touching, states = sum(r.touching for r in done), sum(r.states for r in done)
    equal, accelerations = sum(r.equal for r in done), sum(r.accelerations for r in done)
    moved = [r for r in done if r.motion == r.motion]
    same = sum(r.motion <= NEAR for r in moved)
    explained, solved = sum(r.explained for r in done), sum(r.solved for r in done)
    total = (
        f"{len(done)} of {len(rows)} models; contacts equal in {equal}/{touching} states in contact "
        f"({_share(equal, touching)}; {_share(equal + explained, touching)} with those where MuJoCo is off its own "
        f"optimum), accelerations in {accelerations}/{states} ({_share(accelerations, states)}; "
        f"{_share(accelerations + solved, states)}), motions in {same}/{len(moved)}"
    )
    return "\n".join([_HEAD, "|" + "---|" * 9, *map(_line, rows), "", *_causes(done), "", total])


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def _causes(rows: list[Row]) -> list[str]:
    """What differs, over all models, most frequent first."""
    causes = sum((row.reasons for row in rows), Counter())
    return [f"- {reason}: {count} states" for reason, count in causes.most_common()]
