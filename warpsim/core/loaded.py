"""Modules that are not worth loading for their functions' sake alone.

Whoever hands a function tensors has loaded torch. So modules of such functions, which commands without a tensor import
too, need not load it: that would take longer than the command.
"""

from __future__ import annotations

import sys
from typing import Any


class Loaded:
    """A module by name, looked up when something of it is used."""

    def __init__(self, name: str) -> None:
        """Names it."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(sys.modules[self._name], attribute)
