"""The reader's ledger: one line for each thing a reader met, saying what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warpsim.core.errors import InputError

STATUSES = ("used", "assumed", "ignored", "unsupported")


@dataclass(frozen=True)
class LedgerEntry:
    """What a reader did with one authored thing.

    Attributes:
        path: Where it is: a USD prim path, or kind and name in MJCF, e.g. "joint 'knee'".
        attribute: The attribute or feature, e.g. "physics:density".
        status: "used"; "assumed" (left open, and the motion depends on the reader's choice); "ignored" (no influence on
            the physics); "unsupported" (would have changed the physics).
        reason: Why, in a few words.
    """

    path: str
    attribute: str
    status: str
    reason: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise InputError(f"ledger status {self.status!r} of {self.path}.{self.attribute}; use one of {STATUSES}")

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.path}: {self.attribute} {self.status}{reason}"


def unsupported(ledger: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """The entries that a simulation of the scene would get wrong."""
    return [entry for entry in ledger if entry.status == "unsupported"]


def assumed(ledger: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """The entries of what the file leaves open and the reader had to choose."""
    return [entry for entry in ledger if entry.status == "assumed"]
