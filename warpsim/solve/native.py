"""Products and costs of the contact solver on the rows of one world, as native code on raw pointers. Not taped.

Native, because the compiler then knows what does not overlap and can keep sums in registers; the same text compiles
for CPU and CUDA. Groups have one of few numbers of rows, for each of which a loop of fixed length is compiled.

Kinds of rows (`warpsim.solve.rows`): 0 equality, 1 unilateral, 2 dry friction (Huber), 3 elliptic cone.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real
from warpsim.solve.rows import Rows
from warpsim.solve.sparsity import TreeSparsity

_ROW = "reinterpret_cast<scalar*>(reinterpret_cast<char*>({0}.data) + w * {0}.strides[0])"
_INT_ROW = "reinterpret_cast<int*>(reinterpret_cast<char*>({0}.data) + w * {0}.strides[0])"


def _pointers(reals: list[str], integers: list[str]) -> str:
    lines = ["    using scalar = decltype(rows.weight.data[0] + rows.weight.data[0]);"]
    for name in reals:
        lines.append(f"    scalar* __restrict__ p_{name.replace('.', '_')} = {_ROW.format(name)};")
    for name in integers:
        lines.append(f"    const int* __restrict__ p_{name.replace('.', '_')} = {_INT_ROW.format(name)};")
    return "\n".join(lines)


ROW_POINTERS = _pointers(
    ["rows.weight", "rows.reference", "rows.scale", "rows.entry"],
    ["rows.used", "rows.kind", "rows.first_row", "rows.first_column", "rows.first_entry", "rows.column"],
)

# `by_rows(dim, act)` calls act with an object whose `value` is the number of rows of a group, known to the compiler.
_SIZES = (1, 2, 3, 4, 5, 6, 10)  # at most six, or the ten edges of a pyramid
BY_ROWS = "\n".join(
    [
        *(f"    struct Rows{n} {{ enum {{ value = {n} }}; }};" for n in _SIZES),
        "    auto by_rows = [](int dim, auto&& act) {",
        "        switch (dim) {",
        *(f"        case {n}: act(Rows{n}()); break;" for n in _SIZES),
        "        }",
        "    };",
    ]
)

# y = J x (minus aref if asked for), group by group.
_JACOBIAN_PRODUCT = (
    ROW_POINTERS
    + BY_ROWS
    + """
    scalar* __restrict__ px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
    scalar* __restrict__ py = reinterpret_cast<scalar*>(reinterpret_cast<char*>(y.data) + w * y.strides[0]);
    for (int g = 0; g < p_rows_used[0]; ++g) {
        const int r0 = p_rows_first_row[g];
        const int c0 = p_rows_first_column[g], columns = p_rows_first_column[g + 1] - c0;
        const scalar* entry = p_rows_entry + p_rows_first_entry[g];
        by_rows(p_rows_first_row[g + 1] - r0, [&](auto rows_of_group) {
            constexpr int dim = decltype(rows_of_group)::value;
            scalar total[dim];
            for (int r = 0; r < dim; ++r) total[r] = subtract ? -p_rows_reference[r0 + r] : scalar(0);
            for (int c = 0; c < columns; ++c) {
                const scalar value = px[p_rows_column[c0 + c]];
                for (int r = 0; r < dim; ++r) total[r] += entry[c * dim + r] * value;
            }
            for (int r = 0; r < dim; ++r) py[r0 + r] = total[r];
        });
    }
"""
)

# x += sign · Jᵀ f
_JACOBIAN_TRANSPOSE = (
    ROW_POINTERS
    + BY_ROWS
    + """
    scalar* __restrict__ pf = reinterpret_cast<scalar*>(reinterpret_cast<char*>(f.data) + w * f.strides[0]);
    scalar* __restrict__ px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
    for (int g = 0; g < p_rows_used[0]; ++g) {
        const int r0 = p_rows_first_row[g];
        const int c0 = p_rows_first_column[g], columns = p_rows_first_column[g + 1] - c0;
        const scalar* entry = p_rows_entry + p_rows_first_entry[g];
        by_rows(p_rows_first_row[g + 1] - r0, [&](auto rows_of_group) {
            constexpr int dim = decltype(rows_of_group)::value;
            scalar force[dim];
            bool any = false;
            for (int r = 0; r < dim; ++r) {
                force[r] = sign * pf[r0 + r];
                any = any || force[r] != 0;
            }
            if (!any) return;
            for (int c = 0; c < columns; ++c) {
                scalar total = 0;
                for (int r = 0; r < dim; ++r) total += entry[c * dim + r] * force[r];
                px[p_rows_column[c0 + c]] += total;
            }
        });
    }
"""
)

# Cost of all rows at y, their force −∇s, and along a direction z its slope and curvature.
_COST = (
    ROW_POINTERS
    + """
    scalar* __restrict__ py = reinterpret_cast<scalar*>(reinterpret_cast<char*>(y.data) + w * y.strides[0]);
    scalar* __restrict__ pz = reinterpret_cast<scalar*>(reinterpret_cast<char*>(z.data) + w * z.strides[0]);
    scalar* __restrict__ pf = reinterpret_cast<scalar*>(reinterpret_cast<char*>(f.data) + w * f.strides[0]);
    scalar cost = 0, slope = 0, curvature = 0;
    for (int g = 0; g < p_rows_used[0]; ++g) {
        const int kind = p_rows_kind[g], r0 = p_rows_first_row[g], dim = p_rows_first_row[g + 1] - r0;
        const scalar* d = p_rows_weight + r0;
        const scalar* s = p_rows_scale + r0;
        scalar u[6], v[6];
        if (kind != 3) {
            for (int r = 0; r < dim; ++r) {
                const scalar value = py[r0 + r] + alpha * pz[r0 + r], along = pz[r0 + r];
                scalar force = 0;
                if (kind == 0 || (kind == 1 && value < 0)) {
                    force = -d[r] * value;
                    cost += scalar(0.5) * d[r] * value * value;
                    curvature += d[r] * along * along;
                } else if (kind == 2) {
                    const scalar limit = s[r] / d[r];
                    if (value >= limit) { force = -s[r]; cost += s[r] * (value - scalar(0.5) * limit); }
                    else if (value <= -limit) { force = s[r]; cost += s[r] * (-value - scalar(0.5) * limit); }
                    else {
                        force = -d[r] * value;
                        cost += scalar(0.5) * d[r] * value * value;
                        curvature += d[r] * along * along;
                    }
                }
                slope -= force * along;
                if (keep) pf[r0 + r] = force;
            }
            continue;
        }
        scalar t2 = 0;
        for (int r = 0; r < dim; ++r) {
            u[r] = s[r] * (py[r0 + r] + alpha * pz[r0 + r]);
            v[r] = s[r] * pz[r0 + r];
            if (r) t2 += u[r] * u[r];
        }
        const scalar mu = s[0], n = u[0];
        if (n >= 0 && n * n >= mu * mu * t2) {
            if (keep) for (int r = 0; r < dim; ++r) pf[r0 + r] = 0;
        } else if (n <= 0 && mu * mu * n * n >= t2) {
            for (int r = 0; r < dim; ++r) {
                const scalar value = py[r0 + r] + alpha * pz[r0 + r], along = pz[r0 + r];
                cost += scalar(0.5) * d[r] * value * value;
                slope += d[r] * value * along;
                curvature += d[r] * along * along;
                if (keep) pf[r0 + r] = -d[r] * value;
            }
        } else {
            const scalar t = sqrt(t2), dm = d[0] / (mu * mu * (1 + mu * mu)), gap = n - mu * t;
            scalar tv = 0, vv = 0;
            for (int r = 1; r < dim; ++r) { tv += u[r] * v[r]; vv += v[r] * v[r]; }
            const scalar t1 = tv / t, rate = v[0] - mu * t1;
            cost += scalar(0.5) * dm * gap * gap;
            slope += dm * gap * rate;
            curvature += dm * (rate * rate - gap * mu * (vv - t1 * t1) / t);
            if (keep) {
                pf[r0] = -dm * gap * mu;
                for (int r = 1; r < dim; ++r) pf[r0 + r] = dm * gap * mu * u[r] / t * s[r];
            }
        }
    }
    scalar* result = reinterpret_cast<scalar*>(reinterpret_cast<char*>(out.data) + w * out.strides[0]);
    result[0] = cost;
    result[1] = slope;
    result[2] = curvature;
"""
)

# y = (M + diagonal) x on the tree's rows
_MASS_PRODUCT = """
    using scalar = decltype(matrix.data[0] + matrix.data[0]);
    const scalar* __restrict__ m =
        reinterpret_cast<scalar*>(reinterpret_cast<char*>(matrix.data) + w * matrix.strides[0]);
    const scalar* __restrict__ diagonal =
        reinterpret_cast<scalar*>(reinterpret_cast<char*>(implicit.data) + w * implicit.strides[0]);
    const scalar* __restrict__ px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
    scalar* __restrict__ py = reinterpret_cast<scalar*>(reinterpret_cast<char*>(y.data) + w * y.strides[0]);
    const int* start = t.row_start.data;
    const int* column = t.row_column.data;
    for (int d = 0; d < t.nv; ++d) py[d] = (m[start[d]] + diagonal[d]) * px[d];
    for (int d = 0; d < t.nv; ++d) {
        scalar total = 0;
        for (int e = start[d] + 1; e < start[d + 1]; ++e) {
            total += m[e] * px[column[e]];
            py[column[e]] += m[e] * px[d];
        }
        py[d] += total;
    }
"""

# four partial sums: independent, so they can run side by side, in a fixed order
_DOT = """
    using scalar = decltype(a.data[0] + a.data[0]);
    const scalar* pa = reinterpret_cast<scalar*>(reinterpret_cast<char*>(a.data) + w * a.strides[0]);
    const scalar* pb = reinterpret_cast<scalar*>(reinterpret_cast<char*>(b.data) + w * b.strides[0]);
    scalar s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int i = 0;
    for (; i + 3 < n; i += 4) {
        s0 += pa[i] * pb[i];
        s1 += pa[i + 1] * pb[i + 1];
        s2 += pa[i + 2] * pb[i + 2];
        s3 += pa[i + 3] * pb[i + 3];
    }
    for (; i < n; ++i) s0 += pa[i] * pb[i];
    return (s0 + s1) + (s2 + s3);
"""


@wp.func_native(_DOT)
def dot(n: int, w: int, a: wp.array2d(dtype=real), b: wp.array2d(dtype=real)) -> real:
    """Scalar product of the first n entries of world w."""
    return real(0.0)


@wp.func_native(_JACOBIAN_PRODUCT)
def jacobian_product(rows: Rows, w: int, x: wp.array2d(dtype=real), subtract: int, y: wp.array2d(dtype=real)):
    """y = J x, less aref if `subtract` is 1."""


@wp.func_native(_JACOBIAN_TRANSPOSE)
def jacobian_transpose(rows: Rows, w: int, f: wp.array2d(dtype=real), sign: real, x: wp.array2d(dtype=real)):
    """x += sign · Jᵀ f."""


@wp.func_native(_COST)
def row_cost(
    rows: Rows,
    w: int,
    y: wp.array2d(dtype=real),
    z: wp.array2d(dtype=real),
    alpha: real,
    keep: int,
    f: wp.array2d(dtype=real),
    out: wp.array2d(dtype=real),
):
    """Cost, slope and curvature of s along z at y + alpha z, into `out`; with `keep`, the force −∇s into f."""


@wp.func_native(_MASS_PRODUCT)
def mass_product(
    t: TreeSparsity,
    w: int,
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    x: wp.array2d(dtype=real),
    y: wp.array2d(dtype=real),
):
    """y = (M + diag(implicit)) x."""
