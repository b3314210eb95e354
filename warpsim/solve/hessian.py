"""The Hessian of the contact problem, H = M + JᵀWJ: formed, factored and solved with, as native code. Not taped.

H = LᵀDL, from the last dof to the first, in the lower triangle of the dofs with a row envelope: row d holds the dofs
from the first one it is coupled with to d itself. Depth-first numbering makes that the tree's own dofs, and entries of
other branches, which stay zero, are skipped; so nothing is spent on bodies that do not touch, and one factorization
serves trees and piles. Each update runs along two rows, without sums that would have to wait for one another.

The diagonal holds 1/D. `rows.mode` says what W was built of, a bit per row that acts; where a cone slides, W also
depends on how fast, and `_SLIDING` says so.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real
from warpsim.solve.native import BY_ROWS, ROW_POINTERS
from warpsim.solve.rows import Rows
from warpsim.solve.sparsity import TreeSparsity

_SLIDING = 1 << 16

# Which rows of group g act at y; as a lambda `mode_of(g)`.
_MODES = f"""
    auto mode_of = [&](int g) {{
        const int kind = p_rows_kind[g], r0 = p_rows_first_row[g], dim = p_rows_first_row[g + 1] - r0;
        const scalar* s = p_rows_scale + r0;
        const int all = (1 << dim) - 1;
        if (kind == 0) return all;
        int mode = 0;
        if (kind == 3) {{
            const scalar mu = s[0], normal = mu * py[r0];
            scalar t2 = 0;
            for (int r = 1; r < dim; ++r) t2 += (s[r] * py[r0 + r]) * (s[r] * py[r0 + r]);
            if (normal >= 0 && normal * normal >= mu * mu * t2) return 0;
            return normal <= 0 && mu * mu * normal * normal >= t2 ? all : {_SLIDING};
        }}
        for (int r = 0; r < dim; ++r) {{
            const scalar value = py[r0 + r];
            if (kind == 1 ? value < 0 : fabs(value) < s[r] / p_rows_weight[r0 + r]) mode |= 1 << r;
        }}
        return mode;
    }};
"""

# Row d of the lower triangle, reaching back to dof `to`.
_ROWS = """
    auto row_of = [&](int d) { return h + d * (d + 1) / 2; };
    auto reach = [&](int d, int to) {
        scalar* row = row_of(d);
        while (low[d] > to) row[--low[d]] = 0;
    };
"""

_FACTOR = (
    ROW_POINTERS
    + BY_ROWS
    + """
    scalar* __restrict__ py = reinterpret_cast<scalar*>(reinterpret_cast<char*>(y.data) + w * y.strides[0]);
    scalar* __restrict__ m = reinterpret_cast<scalar*>(reinterpret_cast<char*>(matrix.data) + w * matrix.strides[0]);
    scalar* __restrict__ diagonal =
        reinterpret_cast<scalar*>(reinterpret_cast<char*>(implicit.data) + w * implicit.strides[0]);
    scalar* h = reinterpret_cast<scalar*>(reinterpret_cast<char*>(factor.data) + w * factor.strides[0]);
    int* low = reinterpret_cast<int*>(reinterpret_cast<char*>(envelope.data) + w * envelope.strides[0]);
    int* modes = reinterpret_cast<int*>(reinterpret_cast<char*>(rows.mode.data) + w * rows.mode.strides[0]);
    const int* start = t.row_start.data;
    const int* column = t.row_column.data;
    const int n = t.nv;
"""
    + _MODES
    + _ROWS
    + f"""
    const int groups = p_rows_used[0];
    bool same = known != 0;
    for (int g = 0; g < groups; ++g) {{
        const int mode = mode_of(g);
        same = same && mode == modes[g] && mode != {_SLIDING};
        modes[g] = mode;
    }}
    if (same) return 0;
"""
    + """
    for (int d = 0; d < n; ++d) {
        scalar* row = row_of(d);
        low[d] = column[start[d + 1] - 1];
        for (int e = low[d]; e < d; ++e) row[e] = 0;
        row[d] = m[start[d]] + diagonal[d];
        for (int e = start[d] + 1; e < start[d + 1]; ++e) row[column[e]] = m[e];
    }
    for (int g = 0; g < groups; ++g) {
        const int mode = modes[g];
        if (mode == 0) continue;
        const int r0 = p_rows_first_row[g], c0 = p_rows_first_column[g];
        const int columns = p_rows_first_column[g + 1] - c0;
        const int* dof = p_rows_column + c0;
        const scalar* entry = p_rows_entry + p_rows_first_entry[g];
        const scalar* d = p_rows_weight + r0;
        const scalar* s = p_rows_scale + r0;
        int least = n;
        for (int c = 0; c < columns; ++c) least = wp::min(least, dof[c]);
        for (int c = 0; c < columns; ++c) reach(dof[c], least);
        by_rows(p_rows_first_row[g + 1] - r0, [&](auto rows_of_group) {
            constexpr int dim = decltype(rows_of_group)::value;
            scalar weight[dim * dim];
            // cones have three, four or six rows
            const bool sliding = (dim == 3 || dim == 4 || dim == 6) && mode == SLIDING;
            if (sliding) {
                scalar u[dim], t2 = 0;
                for (int r = 0; r < dim; ++r) { u[r] = s[r] * py[r0 + r]; if (r) t2 += u[r] * u[r]; }
                const scalar mu = s[0], tangent = sqrt(t2), dm = d[0] / (mu * mu * (1 + mu * mu));
                const scalar ratio = mu * u[0] / tangent;
                for (int r = 0; r < dim; ++r)
                    for (int q = 0; q < dim; ++q) {
                        scalar value;
                        if (r == 0 && q == 0) value = 1;
                        else if (r == 0 || q == 0) value = -mu * u[r + q] / tangent;
                        else value = ratio * u[r] * u[q] / t2 + (r == q ? mu * mu - ratio : scalar(0));
                        weight[r * dim + q] = dm * value * s[r] * s[q];
                    }
            } else {
                for (int r = 0; r < dim; ++r) weight[r] = mode >> r & 1 ? d[r] : scalar(0);
            }
            for (int c = 0; c < columns; ++c) {
                scalar product[dim];
                for (int r = 0; r < dim; ++r) {
                    if (sliding) {
                        scalar total = 0;
                        for (int q = 0; q < dim; ++q) total += weight[r * dim + q] * entry[c * dim + q];
                        product[r] = total;
                    } else {
                        product[r] = weight[r] * entry[c * dim + r];
                    }
                }
                const int i = dof[c];
                scalar* row = row_of(i);
                for (int e = c; e < columns; ++e) {
                    const int j = dof[e];
                    scalar total = 0;
                    for (int r = 0; r < dim; ++r) total += product[r] * entry[e * dim + r];
                    if (j < i || e == c) row[j] += total;
                    else if (j > i) row_of(j)[i] += total;
                    else row[i] += 2 * total;  // a dof listed twice
                }
            }
        });
    }
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
""".replace("SLIDING", str(_SLIDING))
)

# x ← (LᵀDL)⁻¹ x
_SOLVE = """
    using scalar = decltype(factor.data[0] + factor.data[0]);
    const scalar* h = reinterpret_cast<scalar*>(reinterpret_cast<char*>(factor.data) + w * factor.strides[0]);
    const int* low = reinterpret_cast<int*>(reinterpret_cast<char*>(envelope.data) + w * envelope.strides[0]);
    scalar* __restrict__ px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
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
def factor_hessian(
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
    """Forms and factors H at y; 0 if it is positive definite.

    Args:
        rows: Constraint rows.
        t: Pattern of M.
        w: World.
        y: J a − aref.
        matrix: M.
        implicit: What adds to M's diagonal.
        known: 1 if `factor` and `rows.mode` are those of the same rows at another y: where H is the same, it stays.
        factor: Written.
        envelope: First dof of each row, written.
    """
    return 0


@wp.func_native(_SOLVE)
def solve_hessian(
    nv: int,
    w: int,
    factor: wp.array2d(dtype=real),
    envelope: wp.array2d(dtype=wp.int32),
    x: wp.array2d(dtype=real),
):
    """Solves H x = b in place."""
