"""What goes wrong between processes."""

from __future__ import annotations

from warpsim.core.errors import WarpsimError


class RankError(WarpsimError):
    """Ranks do not fit together, or one of them has died or hangs; says which."""


class WorkerError(WarpsimError):
    """An executor's worker failed; says at which worlds and values."""

    def __reduce__(self) -> tuple[type[WorkerError], tuple[str]]:
        """Executors send it from process to process."""
        return type(self), (str(self),)
