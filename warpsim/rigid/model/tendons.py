"""Fixed tendons: which joints they span, and their length and rate as Warp functions."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real


@wp.struct
class TendonTopology:
    """Terms of all tendons, in tendon order."""

    count: wp.int32
    start: wp.array(dtype=wp.int32)  # (count + 1,) first term of each tendon
    q: wp.array(dtype=wp.int32)  # (terms,) coordinate
    dof: wp.array(dtype=wp.int32)  # (terms,)
    # ordered pairs of terms of one tendon whose dofs lie on one chain: where the mass matrix has an entry
    pair_count: wp.int32
    pair_tendon: wp.array(dtype=wp.int32)  # (pairs,)
    pair_a: wp.array(dtype=wp.int32)  # (pairs,) term
    pair_b: wp.array(dtype=wp.int32)  # (pairs,) term
    pair_entry: wp.array(dtype=wp.int32)  # (pairs,) entry of the mass matrix, -1 for the mirrored pair


@wp.func
def tendon_length(
    t: TendonTopology, coefficient: wp.array2d(dtype=real), q: wp.array2d(dtype=real), w: int, i: int
) -> real:
    """Σ coefficient · q."""
    length = real(0.0)
    for k in range(t.start[i], t.start[i + 1]):
        length += coefficient[w, k] * q[w, t.q[k]]
    return length


@wp.func
def tendon_rate(
    t: TendonTopology, coefficient: wp.array2d(dtype=real), qd: wp.array2d(dtype=real), w: int, i: int
) -> real:
    """Σ coefficient · qd."""
    rate = real(0.0)
    for k in range(t.start[i], t.start[i + 1]):
        rate += coefficient[w, k] * qd[w, t.dof[k]]
    return rate
