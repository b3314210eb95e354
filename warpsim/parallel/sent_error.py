"""An error on its way from process to process: what it says and its plain figures, not what it was computing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_PLAIN = (str, int, float, bool, tuple, type(None))


@dataclass(frozen=True)
class SentError:
    """An error as plain data.

    Attributes:
        kind: Its class.
        arguments: Its texts and numbers.
        fields: Its attributes that are such; a trajectory, say, stays where it is.
    """

    kind: type[Exception]
    arguments: tuple[Any, ...]
    fields: dict[str, Any]

    @staticmethod
    def of(error: Exception) -> SentError:
        """Packs an error."""
        arguments = tuple(a if isinstance(a, _PLAIN) else str(a) for a in error.args)
        fields = {name: value for name, value in vars(error).items() if isinstance(value, _PLAIN)}
        notes = list(getattr(error, "__notes__", []))
        return SentError(type(error), arguments, {**fields, **({"__notes__": notes} if notes else {})})

    def error(self) -> Exception:
        """The error again, whatever its constructor wants."""
        made = self.kind.__new__(self.kind, *self.arguments)
        made.args = self.arguments
        made.__dict__.update(self.fields)
        return made
