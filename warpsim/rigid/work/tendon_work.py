"""What the paths of spatial tendons leave of an evaluation, and how stages read tendons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import warp as wp

from warpsim.core.precision import real, vec6
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.tendons import TendonMotion


@dataclass
class TendonWork:
    """Intermediates of one evaluation; only models with spatial tendons have them."""

    branch: wp.array  # (W, spans) int32: how each span wraps, STRAIGHT … of `dynamics.tendon_wrap`
    root: wp.array  # (W, spans): what the search for an inside wrap found, no gradient
    left: wp.array  # (W, spans): the defect it left there, no gradient
    span_length: wp.array  # (W, spans), m, over the pulley's divisor
    pull: wp.array  # (W, 3 · spans) vec6: unit wrenches of the tendon's pull, about the trees' reference points
    length: wp.array  # (W, ntendon), m; 0 of fixed tendons
    moment: wp.array  # (W, terms)
    # empty without inertia along tendons
    bias: wp.array  # (W, nv + 1) vec6: spatial accelerations of all dofs' frames if q̈ were zero
    drift: wp.array  # (W, ntendon), m/s²: J̇q̇


def make_tendon_work(
    m: Model, live: Callable[[int, type], wp.array], fixed: Callable[[int, type], wp.array]
) -> TendonWork | None:
    """Allocates them.

    Args:
        m: The model.
        live: Makes a (W, count) array that carries a gradient where the evaluation is differentiated.
        fixed: Makes one that never does.
    """
    if not m.has_spatial_tendons:
        return None
    t = m.tendon_topology
    return TendonWork(
        branch=fixed(t.span_count, wp.int32),
        root=fixed(t.span_count, real),
        left=fixed(t.span_count, real),
        span_length=live(t.span_count, real),
        pull=live(3 * t.span_count, vec6),
        length=live(t.count, real),
        moment=live(t.dof.shape[0], real),
        bias=live(m.nv + 1 if m.has_tendon_armature else 0, vec6),
        drift=live(t.count if m.has_tendon_armature else 0, real),
    )


def tendon_motion(m: Model, tendon: TendonWork | None) -> TendonMotion:
    """Moment arms and lengths for a launch; the coefficients themselves where all tendons are fixed."""
    x = TendonMotion()
    x.moment = m.tendon.coefficient if tendon is None else tendon.moment
    x.length = m.no_activation if tendon is None else tendon.length
    return x
