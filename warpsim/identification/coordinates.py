"""Coordinates and velocities of the whole scene at each sample, as far as channels tell them."""

from __future__ import annotations

import torch

from warpsim.identification.grid import Grid
from warpsim.rigid.model.tangent import difference
from warpsim.rigid.model.topology import Layout

_SIZES = {"free": (7, 6), "ball": (4, 3)}
"""Joint kind → coordinates and dofs; 1 of both else."""


def measured_states(grid: Grid, layout: Layout) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(R, G, nq), (R, G, nv), (R, G, 2·nv): states, and which of their numbers are measurements.

    Velocities that were not measured are differences of coordinates that were; what is not known at all is that of the
    recording's start.

    Args:
        grid: Of recordings.
        layout: The scene's joints.
    """
    count, samples, nv = len(grid.q), grid.samples, grid.qd.shape[1]
    q, qd = (start[:, None].expand(-1, samples, -1).clone() for start in (grid.q, grid.qd))
    known = torch.zeros(count, samples, 2 * nv, dtype=torch.bool)
    for joint, (name, kind) in enumerate(zip(layout.joint_names, layout.joint_kinds, strict=True)):
        coordinates, dofs = _SIZES.get(kind, (1, 1))
        c, d = int(layout.joint_q[joint]), int(layout.joint_dof[joint])
        own_q, own_d = slice(c, c + coordinates), slice(d, d + dofs)
        _fill(grid, "q", q, own_q, known, own_d)
        _fill(grid, f"joint:{name}", q, own_q, known, own_d)
        if kind == "free":
            body = layout.body_names[int(layout.joint_body[joint])]
            _fill(grid, f"body_position:{body}", q, slice(c, c + 3), known, slice(d, d + 3))
            _fill(grid, f"body_rotation:{body}", q, slice(c + 3, c + 7), known, slice(d + 3, d + 6))
        rates = slice(nv + d, nv + d + dofs)
        _fill(grid, "qd", qd, own_d, known, rates)
        _fill(grid, f"joint_velocity:{name}", qd, own_d, known, rates)
    _differences(grid, layout, q, qd, known)
    return q, qd, known


def channel_dofs(channel: str, layout: Layout) -> slice | None:
    """Dofs whose coordinates a channel tells, one number of its noise for each; None: it tells none."""
    stem, _, name = channel.partition(":")
    if channel == "q":
        return slice(0, layout.nv)
    for joint, kind in enumerate(layout.joint_kinds):
        first = int(layout.joint_dof[joint])
        if stem == "joint" and name == layout.joint_names[joint] and kind not in _SIZES:
            return slice(first, first + 1)
        if kind == "free" and name == layout.body_names[int(layout.joint_body[joint])]:
            if stem in ("body_position", "body_rotation"):
                return slice(first, first + 3) if stem == "body_position" else slice(first + 3, first + 6)
    return None


def _fill(grid: Grid, channel: str, into: torch.Tensor, place: slice, known: torch.Tensor, which: slice) -> None:
    """Writes a channel's measurements of one joint."""
    if channel not in grid.measured:
        return
    told = grid.mask[channel] > 0
    values = grid.measured[channel].reshape(*told.shape, -1)
    own = values[..., place] if channel in ("q", "qd") else values
    into[..., place] = torch.where(told[..., None], own, into[..., place])
    known[..., which] |= told[..., None]


def _differences(grid: Grid, layout: Layout, q: torch.Tensor, qd: torch.Tensor, known: torch.Tensor) -> None:
    """Puts differences of coordinates where velocities were not measured: of both neighbors, else of one."""
    nv, samples = qd.shape[-1], q.shape[1]
    if samples < 2:
        return
    told = known[..., nv:].clone()
    here = torch.arange(samples)
    ahead, behind = (here + 1).clamp(max=samples - 1), (here - 1).clamp(min=0)
    for first, last in ((behind, here), (here, ahead), (behind, ahead)):  # the best comes last
        spans = last - first
        slope = difference(layout, q[:, last], q[:, first]) / (spans.clamp(min=1) * grid.interval[:, None])[..., None]
        both = known[:, first, :nv] & known[:, last, :nv] & (spans > 0)[:, None]
        qd[:] = torch.where(both & ~told, slope, qd)
        known[..., nv:] |= both
