"""A simulator as a notebook shows it."""

from __future__ import annotations

from typing import Any

from warpsim.core.notebook import facts_html, folded_page_html
from warpsim.sim.trajectory import Trajectory
from warpsim.view.page import page_html


def simulator_html(sim: Any, still: Trajectory) -> str:
    """Facts, and the current state, to be unfolded.

    Args:
        sim: A `Simulator`.
        still: Its state as a trajectory of one frame, with poses.
    """
    facts = {
        "bodies": len(sim.body_names) - 1,
        "dofs": sim.nv,
        "controls": f"{' + '.join(sim.control_names)} ({sim.control_size})",
        "worlds": f"{sim.worlds} on {sim.device}",
        "time step": f"{sim.timestep:g} s",
    }
    page = folded_page_html(page_html(still.page()), "View the state")
    return facts_html(f"Simulator of {sim.scene.name}", facts) + page
