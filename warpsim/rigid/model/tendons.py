"""Tendons: which dofs they act on, and their length and rate as Warp functions.

A fixed tendon's length is Σ coefficient · q. A spatial one runs through sites and around shapes: its length and its
moment arms depend on the configuration and are found by `warpsim.rigid.dynamics.tendon_path`; its terms are the dofs
that move anything on its way. `TendonMotion` holds both kinds' moment arms, so that forces, rates and constraint rows
do not tell them apart.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real


@wp.struct
class TendonTopology:
    """Terms of all tendons, in tendon order, and the spans of spatial ones."""

    count: wp.int32
    spatial: wp.array(dtype=wp.int32)  # (count,) 1: its motion depends on the configuration
    start: wp.array(dtype=wp.int32)  # (count + 1,) first term of each tendon
    q: wp.array(dtype=wp.int32)  # (terms,) coordinate; 0 of spatial tendons
    dof: wp.array(dtype=wp.int32)  # (terms,)
    # ordered pairs of terms of one tendon whose dofs lie on one chain: where the mass matrix has an entry
    pair_count: wp.int32
    pair_tendon: wp.array(dtype=wp.int32)  # (pairs,)
    pair_a: wp.array(dtype=wp.int32)  # (pairs,) term
    pair_b: wp.array(dtype=wp.int32)  # (pairs,) term
    pair_entry: wp.array(dtype=wp.int32)  # (pairs,) entry of the mass matrix, -1 for the mirrored pair
    # a span leads from one site to the next, perhaps around a shape; three places on it pull at bodies:
    # 3 · span at the first site, + 1 at the shape, + 2 at the second site
    span_count: wp.int32
    span_start: wp.array(dtype=wp.int32)  # (count + 1,) first span of each tendon
    span_site: wp.array2d(dtype=wp.int32)  # (spans, 2)
    span_body: wp.array2d(dtype=wp.int32)  # (spans, 3) body at each place; the second one -1 without a shape
    span_shape: wp.array(dtype=wp.int32)  # (spans,) what it may wrap around, or -1
    span_cylinder: wp.array(dtype=wp.int32)  # (spans,) 1: that is a cylinder, else a sphere
    span_side: wp.array(dtype=wp.int32)  # (spans,) site that says on which side, or -1
    span_share: wp.array(dtype=real)  # (spans,) 1 / the pulley's divisor
    span_crank: wp.array(dtype=wp.int32)  # (spans,) tendon that is a slider-crank, or -1
    pull_start: wp.array(dtype=wp.int32)  # (terms + 1,) first pull of each term
    pull_place: wp.array(dtype=wp.int32)  # (pulls,) place on a span whose body the term's dof moves


@wp.struct
class TendonMotion:
    """What tendons do at a configuration."""

    moment: wp.array2d(dtype=real)  # (W, terms) d length / d q
    length: wp.array2d(dtype=real)  # (W, count) of spatial tendons; empty if there are none


@wp.func
def _fixed_length(
    t: TendonTopology, coefficient: wp.array2d(dtype=real), q: wp.array2d(dtype=real), w: int, i: int
) -> real:
    length = real(0.0)
    for k in range(t.start[i], t.start[i + 1]):
        length += coefficient[w, k] * q[w, t.q[k]]
    return length


@wp.func
def tendon_length(t: TendonTopology, x: TendonMotion, q: wp.array2d(dtype=real), w: int, i: int) -> real:
    """Length of tendon i: Σ coefficient · q, or that of its path."""
    if t.spatial[i] == 1:
        return x.length[w, i]
    return _fixed_length(t, x.moment, q, w, i)


@wp.func
def tendon_rate(t: TendonTopology, moment: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), w: int, i: int) -> real:
    """Σ moment arm · qd."""
    rate = real(0.0)
    for k in range(t.start[i], t.start[i + 1]):
        rate += moment[w, k] * qd[w, t.dof[k]]
    return rate
