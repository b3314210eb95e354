"""Linear algebra of the contact solver on the rows of one world, as native code on raw pointers. Not taped.

Native, because the compiler then knows what does not overlap and can keep sums in registers; the same text compiles
for CPU and CUDA. H is kept as the lower triangle of the dofs in reverse order with a row envelope: depth-first
numbering makes every subtree contiguous, so without contacts between branches the envelope is the tree's own pattern
and nothing fills in.

Kinds of rows (`warpsim.constraint.rows`): 0 equality, 1 unilateral, 2 dry friction (Huber), 3 elliptic cone.
"""

from __future__ import annotations

import warp as wp

from warpsim.constraint.rows import Rows
from warpsim.model.topology import Topology
from warpsim.precision import real

_ROW = "reinterpret_cast<scalar*>(reinterpret_cast<char*>({0}.data) + w * {0}.strides[0])"
_INT_ROW = "reinterpret_cast<int*>(reinterpret_cast<char*>({0}.data) + w * {0}.strides[0])"


def _pointers(reals: list[str], integers: list[str]) -> str:
    lines = ["    using scalar = decltype(rows.weight.data[0] + rows.weight.data[0]);"]
    for name in reals:
        lines.append(f"    scalar* __restrict__ p_{name.replace('.', '_')} = {_ROW.format(name)};")
    for name in integers:
        lines.append(f"    const int* __restrict__ p_{name.replace('.', '_')} = {_INT_ROW.format(name)};")
    return "\n".join(lines)


_ROW_POINTERS = _pointers(
    ["rows.weight", "rows.reference", "rows.scale", "rows.entry"],
    ["rows.used", "rows.kind", "rows.first_row", "rows.first_column", "rows.first_entry", "rows.column"],
)

# y = J x (minus aref if asked for), group by group.
_JACOBIAN_PRODUCT = (
    _ROW_POINTERS
    + """
    scalar* __restrict__ px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
    scalar* __restrict__ py = reinterpret_cast<scalar*>(reinterpret_cast<char*>(y.data) + w * y.strides[0]);
    for (int g = 0; g < p_rows_used[0]; ++g) {
        const int r0 = p_rows_first_row[g], dim = p_rows_first_row[g + 1] - r0;
        const int c0 = p_rows_first_column[g], columns = p_rows_first_column[g + 1] - c0;
        for (int r = 0; r < dim; ++r) py[r0 + r] = subtract ? -p_rows_reference[r0 + r] : scalar(0);
        const scalar* entry = p_rows_entry + p_rows_first_entry[g];
        for (int c = 0; c < columns; ++c) {
            const scalar value = px[p_rows_column[c0 + c]];
            for (int r = 0; r < dim; ++r) py[r0 + r] += entry[c * dim + r] * value;
        }
    }
"""
)

# x += sign · Jᵀ f
_JACOBIAN_TRANSPOSE = (
    _ROW_POINTERS
    + """
    scalar* __restrict__ pf = reinterpret_cast<scalar*>(reinterpret_cast<char*>(f.data) + w * f.strides[0]);
    scalar* __restrict__ px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
    for (int g = 0; g < p_rows_used[0]; ++g) {
        const int r0 = p_rows_first_row[g], dim = p_rows_first_row[g + 1] - r0;
        const int c0 = p_rows_first_column[g], columns = p_rows_first_column[g + 1] - c0;
        const scalar* entry = p_rows_entry + p_rows_first_entry[g];
        for (int c = 0; c < columns; ++c) {
            scalar total = 0;
            for (int r = 0; r < dim; ++r) total += entry[c * dim + r] * pf[r0 + r];
            px[p_rows_column[c0 + c]] += sign * total;
        }
    }
"""
)

# Cost of all rows at y, their force −∇s, and along a direction z its slope and curvature.
_COST = (
    _ROW_POINTERS
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

# H = M + JᵀWJ at y, factored as L Lᵀ within the envelope; returns 0, or 1 if a pivot is not positive.
_FACTOR = (
    _ROW_POINTERS
    + """
    scalar* __restrict__ py = reinterpret_cast<scalar*>(reinterpret_cast<char*>(y.data) + w * y.strides[0]);
    scalar* __restrict__ m = reinterpret_cast<scalar*>(reinterpret_cast<char*>(matrix.data) + w * matrix.strides[0]);
    scalar* __restrict__ diagonal =
        reinterpret_cast<scalar*>(reinterpret_cast<char*>(implicit.data) + w * implicit.strides[0]);
    scalar* h = reinterpret_cast<scalar*>(reinterpret_cast<char*>(factor.data) + w * factor.strides[0]);
    int* first = reinterpret_cast<int*>(reinterpret_cast<char*>(envelope.data) + w * envelope.strides[0]);
    const int* start = t.row_start.data;
    const int* column = t.row_column.data;
    const int n = t.nv;
    for (int i = 0; i < n; ++i) first[i] = i;
    for (int dof = n - 1; dof >= 0; --dof)
        for (int e = start[dof] + 1; e < start[dof + 1]; ++e) {
            const int i = n - 1 - column[e], j = n - 1 - dof;
            if (j < first[i]) first[i] = j;
        }
    for (int g = 0; g < p_rows_used[0]; ++g) {
        const int c0 = p_rows_first_column[g], c1 = p_rows_first_column[g + 1];
        int least = n;
        for (int c = c0; c < c1; ++c) least = wp::min(least, n - 1 - p_rows_column[c]);
        for (int c = c0; c < c1; ++c) {
            const int i = n - 1 - p_rows_column[c];
            if (least < first[i]) first[i] = least;
        }
    }
    for (int i = 0; i < n; ++i)
        for (int j = first[i]; j <= i; ++j) h[i * (i + 1) / 2 + j] = 0;
    for (int dof = 0; dof < n; ++dof) {
        const int j = n - 1 - dof;
        h[j * (j + 1) / 2 + j] = m[start[dof]] + diagonal[dof];
        for (int e = start[dof] + 1; e < start[dof + 1]; ++e) {
            const int i = n - 1 - column[e];
            h[i * (i + 1) / 2 + j] = m[e];
        }
    }
    for (int g = 0; g < p_rows_used[0]; ++g) {
        const int kind = p_rows_kind[g], r0 = p_rows_first_row[g], dim = p_rows_first_row[g + 1] - r0;
        const int c0 = p_rows_first_column[g], columns = p_rows_first_column[g + 1] - c0;
        const scalar* d = p_rows_weight + r0;
        const scalar* s = p_rows_scale + r0;
        const scalar* entry = p_rows_entry + p_rows_first_entry[g];
        scalar hessian[36];
        scalar weight[10];
        bool full = false, any = false;
        for (int r = 0; r < dim; ++r) {
            const scalar value = py[r0 + r];
            weight[r] = 0;
            if (kind == 0 || (kind == 1 && value < 0)) weight[r] = d[r];
            if (kind == 2 && fabs(value) < s[r] / d[r]) weight[r] = d[r];
        }
        if (kind == 3) {
            scalar u[6], t2 = 0;
            for (int r = 0; r < dim; ++r) { u[r] = s[r] * py[r0 + r]; if (r) t2 += u[r] * u[r]; }
            const scalar mu = s[0], normal = u[0];
            if (normal >= 0 && normal * normal >= mu * mu * t2) continue;
            if (normal <= 0 && mu * mu * normal * normal >= t2) {
                for (int r = 0; r < dim; ++r) weight[r] = d[r];
            } else {
                full = true;
                const scalar tangent = sqrt(t2), dm = d[0] / (mu * mu * (1 + mu * mu)), ratio = mu * normal / tangent;
                for (int r = 0; r < dim; ++r)
                    for (int q = 0; q < dim; ++q) {
                        scalar value;
                        if (r == 0 && q == 0) value = 1;
                        else if (r == 0 || q == 0) value = -mu * u[r + q] / tangent;
                        else value = ratio * u[r] * u[q] / t2 + (r == q ? mu * mu - ratio : scalar(0));
                        hessian[r * dim + q] = dm * value * s[r] * s[q];
                    }
            }
        }
        if (!full) {
            for (int r = 0; r < dim; ++r) any = any || weight[r] != 0;
            if (!any) continue;
        }
        for (int c = 0; c < columns; ++c) {
            scalar product[10];
            for (int r = 0; r < dim; ++r) {
                if (full) {
                    scalar total = 0;
                    for (int q = 0; q < dim; ++q) total += hessian[r * dim + q] * entry[c * dim + q];
                    product[r] = total;
                } else {
                    product[r] = weight[r] * entry[c * dim + r];
                }
            }
            const int i = n - 1 - p_rows_column[c0 + c];
            for (int e = 0; e < columns; ++e) {
                const int j = n - 1 - p_rows_column[c0 + e];
                if (j > i) continue;
                scalar total = 0;
                for (int r = 0; r < dim; ++r) total += product[r] * entry[e * dim + r];
                h[i * (i + 1) / 2 + j] += total;
            }
        }
    }
    for (int i = 0; i < n; ++i) {
        scalar* __restrict__ row = h + i * (i + 1) / 2;
        for (int j = first[i]; j <= i; ++j) {
            const scalar* other = h + j * (j + 1) / 2;
            const int begin = wp::max(first[i], first[j]);
            // four partial sums: independent, so they can run side by side, in a fixed order
            scalar s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            int k = begin;
            for (; k + 3 < j; k += 4) {
                s0 += row[k] * other[k];
                s1 += row[k + 1] * other[k + 1];
                s2 += row[k + 2] * other[k + 2];
                s3 += row[k + 3] * other[k + 3];
            }
            for (; k < j; ++k) s0 += row[k] * other[k];
            const scalar rest = row[j] - ((s0 + s1) + (s2 + s3));
            if (i == j) {
                if (!(rest > 0)) return 1;
                row[j] = sqrt(rest);
            } else {
                row[j] = rest / other[j];
            }
        }
    }
    return 0;
"""
)

# x ← (L Lᵀ)⁻¹ x
_SOLVE = """
    using scalar = decltype(factor.data[0] + factor.data[0]);
    scalar* h = reinterpret_cast<scalar*>(reinterpret_cast<char*>(factor.data) + w * factor.strides[0]);
    const int* first = reinterpret_cast<int*>(reinterpret_cast<char*>(envelope.data) + w * envelope.strides[0]);
    scalar* __restrict__ px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
    for (int i = 0; i < nv; ++i) {
        const scalar* row = h + i * (i + 1) / 2;
        scalar value = px[nv - 1 - i];
        for (int j = first[i]; j < i; ++j) value -= row[j] * px[nv - 1 - j];
        px[nv - 1 - i] = value / row[i];
    }
    for (int i = nv - 1; i >= 0; --i) {
        const scalar* row = h + i * (i + 1) / 2;
        const scalar value = px[nv - 1 - i] / row[i];
        px[nv - 1 - i] = value;
        for (int j = first[i]; j < i; ++j) px[nv - 1 - j] -= row[j] * value;
    }
"""

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


@wp.func_native(_FACTOR)
def factor_hessian(
    rows: Rows,
    t: Topology,
    w: int,
    y: wp.array2d(dtype=real),
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    factor: wp.array2d(dtype=real),
    envelope: wp.array2d(dtype=wp.int32),
) -> int:
    """Forms and factors H at y; 0 if it is positive definite."""
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


@wp.func_native(_MASS_PRODUCT)
def mass_product(
    t: Topology,
    w: int,
    matrix: wp.array2d(dtype=real),
    implicit: wp.array2d(dtype=real),
    x: wp.array2d(dtype=real),
    y: wp.array2d(dtype=real),
):
    """y = (M + diag(implicit)) x."""
