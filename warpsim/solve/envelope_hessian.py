"""H = M + JᵀWJ of few trees: formed, factored and solved with, as native code. Not taped.

H = LᵀDL, from the last dof to the first, in the lower triangle of the dofs with a row envelope: row d holds the dofs
from the first one it is coupled with to d itself. Depth-first numbering makes that the tree's own dofs, and entries of
other branches, which stay zero, are skipped. Each update runs along two rows, without sums that would have to wait for
one another. The diagonal holds 1/D.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real
from warpsim.solve.hessian_rows import START, add_rows
from warpsim.solve.rows import Rows
from warpsim.solve.sparsity import TreeSparsity

# Row d of the lower triangle, reaching back to dof `to`.
_ROWS = """
    auto row_of = [&](int d) { return h + d * (d + 1) / 2; };
    auto reach = [&](int d, int to) {
        scalar* row = row_of(d);
        while (low[d] > to) row[--low[d]] = 0;
    };
"""

_FACTOR = (
    START
    + """
    int* low = reinterpret_cast<int*>(reinterpret_cast<char*>(envelope.data) + w * envelope.strides[0]);
"""
    + _ROWS
    + """
    for (int d = 0; d < n; ++d) {
        scalar* row = row_of(d);
        low[d] = column[start[d + 1] - 1];
        for (int e = low[d]; e < d; ++e) row[e] = 0;
        row[d] = m[start[d]] + diagonal[d];
        for (int e = start[d] + 1; e < start[d + 1]; ++e) row[column[e]] = m[e];
    }
"""
    + add_rows(
        """if (j < i || e == c) row[j] += total;
                    else if (j > i) row_of(j)[i] += total;
                    else row[i] += 2 * total;""",
        open_group="""int least = n;
        for (int c = 0; c < columns; ++c) least = wp::min(least, dof[c]);
        for (int c = 0; c < columns; ++c) reach(dof[c], least);""",
        begin_row="scalar* row = row_of(i);",
    )
    + """
    for (int d = n - 1; d >= 0; --d) {
        scalar* __restrict__ row = row_of(d);
        const int first = low[d];
        if (!(row[d] > 0)) return 1;
        const scalar inverse = 1 / row[d];
        for (int e = d - 1; e >= first; --e) {
            if (row[e] == 0) continue;
            const scalar ratio = row[e] * inverse;
            if (first < low[e]) reach(e, first);
            scalar* __restrict__ target = row_of(e);
            for (int f = first; f <= e; ++f) target[f] -= ratio * row[f];
            row[e] = ratio;
        }
        row[d] = inverse;
    }
    return 0;
"""
)

# x ← (LᵀDL)⁻¹ x
_SOLVE = """
    using scalar = decltype(factor.data[0] + factor.data[0]);
    const scalar* h = reinterpret_cast<scalar*>(reinterpret_cast<char*>(factor.data) + w * factor.strides[0]);
    const int* low = reinterpret_cast<int*>(reinterpret_cast<char*>(envelope.data) + w * envelope.strides[0]);
    scalar* __restrict__ px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
    const int nv = t.nv;
    for (int d = nv - 1; d >= 0; --d) {
        const scalar* __restrict__ row = h + d * (d + 1) / 2;
        const scalar value = px[d];
        for (int e = low[d]; e < d; ++e) px[e] -= row[e] * value;
    }
    for (int d = 0; d < nv; ++d) {
        const scalar* __restrict__ row = h + d * (d + 1) / 2;
        // four partial sums: independent, so they can run side by side, in a fixed order
        scalar s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        int e = low[d];
        for (; e + 3 < d; e += 4) {
            s0 += row[e] * px[e];
            s1 += row[e + 1] * px[e + 1];
            s2 += row[e + 2] * px[e + 2];
            s3 += row[e + 3] * px[e + 3];
        }
        for (; e < d; ++e) s0 += row[e] * px[e];
        px[d] = px[d] * row[d] - ((s0 + s1) + (s2 + s3));
    }
"""


@wp.func_native(_FACTOR)
def factor_envelope(
    rows: Rows,
    t: TreeSparsity,
    w: int,
    y: wp.array2d(dtype=real),
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    known: int,
    factor: wp.array2d(dtype=real),
    envelope: wp.array2d(dtype=wp.int32),
) -> int:
    """As `HessianStorage.factor`; `envelope` receives the first dof of each row."""
    return 0


@wp.func_native(_SOLVE)
def solve_envelope(
    t: TreeSparsity,
    w: int,
    factor: wp.array2d(dtype=real),
    envelope: wp.array2d(dtype=wp.int32),
    x: wp.array2d(dtype=real),
):
    """Solves H x = b in place."""
