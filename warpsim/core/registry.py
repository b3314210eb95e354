"""Where code finds what it calls in a package above its own: `sim.gradcheck()`, say, or a matter that a reader meets.

Packages import downward only. The few places that reach upward name what they want here, and it is loaded when it is
first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

PROVIDERS = {
    "gradcheck": ("warpsim.check.gradcheck.simulator_check", "check_simulator"),
    "matter:liquid": ("warpsim.particles.kind", "LiquidKind"),
}
"""Name → module and function or class."""


def provided(name: str) -> Callable[..., Any]:
    """The function that stands behind a name."""
    module, function = PROVIDERS[name]
    return getattr(importlib.import_module(module), function)
