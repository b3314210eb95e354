"""The rows' part of the Hessian, JᵀWJ, as native text for the storages that hold it.

`rows.mode` says what W was built of, a bit per row that acts; where a cone slides, W also depends on how fast, and
`SLIDING` says so.
"""

from __future__ import annotations

from warpsim.solve.native import BY_ROWS, ROW_POINTERS

SLIDING = 1 << 16

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
            return normal <= 0 && mu * mu * normal * normal >= t2 ? all : {SLIDING};
        }}
        for (int r = 0; r < dim; ++r) {{
            const scalar value = py[r0 + r];
            if (kind == 1 ? value < 0 : fabs(value) < s[r] / p_rows_weight[r0 + r]) mode |= 1 << r;
        }}
        return mode;
    }};
"""

START = (
    ROW_POINTERS
    + BY_ROWS
    + """
    scalar* __restrict__ py = reinterpret_cast<scalar*>(reinterpret_cast<char*>(y.data) + w * y.strides[0]);
    scalar* __restrict__ m = reinterpret_cast<scalar*>(reinterpret_cast<char*>(matrix.data) + w * matrix.strides[0]);
    scalar* __restrict__ diagonal =
        reinterpret_cast<scalar*>(reinterpret_cast<char*>(implicit.data) + w * implicit.strides[0]);
    scalar* h = reinterpret_cast<scalar*>(reinterpret_cast<char*>(factor.data) + w * factor.strides[0]);
    int* modes = reinterpret_cast<int*>(reinterpret_cast<char*>(rows.mode.data) + w * rows.mode.strides[0]);
    const int* start = t.row_start.data;
    const int* column = t.row_column.data;
    const int n = t.nv;
"""
    + _MODES
    + f"""
    const int groups = p_rows_used[0];
    bool same = known != 0;
    for (int g = 0; g < groups; ++g) {{
        const int mode = mode_of(g);
        same = same && mode == modes[g] && mode != {SLIDING};
        modes[g] = mode;
    }}
    if (same) return 0;
"""
)
"""Pointers, and which rows act; returns 0 where a known factor stays."""

_ADD_ROWS = """
    for (int g = 0; g < groups; ++g) {
        const int mode = modes[g];
        if (mode == 0) continue;
        const int r0 = p_rows_first_row[g], c0 = p_rows_first_column[g];
        const int columns = p_rows_first_column[g + 1] - c0;
        const int* dof = p_rows_column + c0;
        const scalar* entry = p_rows_entry + p_rows_first_entry[g];
        const scalar* d = p_rows_weight + r0;
        const scalar* s = p_rows_scale + r0;
        OPEN
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
                BEGIN
                for (int e = c; e < columns; ++e) {
                    const int j = dof[e];
                    scalar total = 0;
                    for (int r = 0; r < dim; ++r) total += product[r] * entry[e * dim + r];
                    ADD
                }
            }
        });
    }
""".replace("SLIDING", str(SLIDING))


def add_rows(add: str, *, open_group: str = "", begin_row: str = "") -> str:
    """Adds every group.

    As text, since even a small function in the inner loop shows in the time of a step.

    Args:
        add: Adds `total` to the entry of dofs i and j, twice that where i is j but e is not c: a dof listed twice.
        open_group: Comes before the group of `columns` dofs `dof`.
        begin_row: Comes before the entries of dof i.
    """
    return _ADD_ROWS.replace("OPEN", open_group).replace("BEGIN", begin_row).replace("ADD", add)
