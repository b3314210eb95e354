"""What of a rollout can be plotted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from warpsim.rigid.model.joint_names import find_joint
from warpsim.rigid.model.topology import Layout
from warpsim.view.plots.curves import Coordinate, Curves

_UNITS = {"hinge": "rad", "slide": "m"}


def rollout_curves(
    title: str,
    times: np.ndarray,
    names: Collection[str],
    values: Callable[[str], np.ndarray],
    layout: Layout,
    worlds: Sequence[int],
) -> Curves:
    """Curves of what was observed.

    Args:
        title: Of the figure.
        times: (frames,) s.
        names: Of the states and outputs that there are.
        values: Name → (frames, worlds, …).
        layout: Of the model.
        worlds: Which worlds to show.
    """
    chosen = list(worlds)

    def rows(name: str) -> np.ndarray:
        return values(name)[:, chosen].reshape(len(times), len(chosen))

    joints = [find_joint(layout, name) for name in layout.joint_names] if "q" in names else []
    energies = {name: rows(f"{name}_energy") for name in ("kinetic", "potential") if f"{name}_energy" in names}
    contacts, unit = _contacts(names, values, chosen)
    return Curves(
        title,
        times,
        joints=[
            Coordinate(joint.name.rpartition("/")[2], values("q")[:, chosen, joint.q.start], _UNITS[joint.kind])
            for joint in joints
            if joint.kind in _UNITS
        ],
        energies=energies,
        contact_times=contacts,
        contact_unit=unit,
        iterations=rows("solver_iterations") if "solver_iterations" in names else None,
    )


def _contacts(
    names: Collection[str], values: Callable[[str], np.ndarray], worlds: Sequence[int]
) -> tuple[dict[str, np.ndarray], str]:
    """Sum of the forces of a world, or the number of its contacts, over time."""
    if "contact_point_forces" in names:
        forces = np.linalg.norm(values("contact_point_forces")[:, worlds], axis=-1).sum(axis=-1)
        return {f"world {world}": forces[:, k] for k, world in enumerate(worlds)}, "N"
    if "contact_count" in names:
        counts = values("contact_count")[:, worlds].reshape(len(values("contact_count")), -1)
        return {f"world {world}": counts[:, k].astype(float) for k, world in enumerate(worlds)}, "contacts"
    return {}, "contacts"
