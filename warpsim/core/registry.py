"""Where a convenience method finds what it calls in a package above its own, or behind an extra: `sim.viewer()`, say.

Packages import downward only, and no import stands in a function. The few methods that reach upward, or need a library
that may not be installed, name what they want here, and it is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

PROVIDERS = {
    "gradcheck": ("warpsim.check.gradcheck.simulator_check", "check_simulator"),
    "plot": ("warpsim.view.plots.figure", "draw"),
    "write_video": ("warpsim.view.raycast.video", "write_video"),
    "with_targets": ("warpsim.task.targets", "with_targets"),
    "live_command": ("warpsim.cli.commands.live_view", "run_live"),
    "viewer": ("warpsim.sim.live", "open_viewer"),
}
"""Name → module and function."""


def provided(name: str) -> Callable[..., Any]:
    """The function that stands behind a name."""
    module, function = PROVIDERS[name]
    return getattr(importlib.import_module(module), function)
