"""LDLᵀ of a symmetric matrix of 3×3 blocks over a `Pattern`, one world after the other. Not taped.

Right-looking, column by column, in native code. It is compact rather than fast; whatever else offers a pattern, a
factorization and a solve can stand in its place.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3

_ROW = "reinterpret_cast<scalar*>(reinterpret_cast<char*>({0}.data) + w * {0}.strides[0])"

# The pivot block becomes the inverse of D_k = l·diag(d)·lᵀ, blocks below become L_ik = A_ik D_k⁻¹.
_FACTOR = (
    "    using scalar = decltype(inertia.data[0] + inertia.data[0]);\n"
    + f"    scalar* __restrict__ a = {_ROW.format('blocks')};\n"
    + f"    scalar* __restrict__ old = {_ROW.format('column')};\n"
    + f"    const scalar* __restrict__ mass = {_ROW.format('inertia')};\n"
    + """
    const int* target = update.data;
    int shifted = 0;
    for (int k = 0; k < n; ++k) {
        const int first = start.data[k], last = start.data[k + 1], below = last - first - 1;
        scalar* p = a + 9 * first;
        scalar d0 = p[0], l10 = p[3], l20 = p[6], d1 = p[4], l21 = p[7], d2 = p[8];
        const scalar tiny0 = scalar(1e-14) * (p[0] < 0 ? -p[0] : p[0]);
        const scalar tiny1 = scalar(1e-14) * (p[4] < 0 ? -p[4] : p[4]);
        const scalar tiny2 = scalar(1e-14) * (p[8] < 0 ? -p[8] : p[8]);
        auto pivot = [&](scalar d, scalar tiny) {
            if (d > tiny) return d;
            ++shifted;
            if (!shift) return d;
            const scalar size = d < 0 ? -d : d;
            return size > mass[k] ? size : mass[k];
        };
        d0 = pivot(d0, tiny0);
        l10 /= d0;
        l20 /= d0;
        d1 = pivot(d1 - l10 * l10 * d0, tiny1);
        l21 = (l21 - l20 * l10 * d0) / d1;
        d2 = pivot(d2 - l20 * l20 * d0 - l21 * l21 * d1, tiny2);
        const scalar m20 = l10 * l21 - l20, i0 = 1 / d0, i1 = 1 / d1, i2 = 1 / d2;
        p[8] = i2;
        p[5] = p[7] = -l21 * i2;
        p[2] = p[6] = m20 * i2;
        p[4] = i1 + l21 * l21 * i2;
        p[1] = p[3] = -l10 * i1 - l21 * m20 * i2;
        p[0] = i0 + l10 * l10 * i1 + m20 * m20 * i2;
        scalar* l = p + 9;
        for (int e = 0; e < below; ++e)
            for (int r = 0; r < 3; ++r) {
                const scalar x = l[9 * e + 3 * r], y = l[9 * e + 3 * r + 1], z = l[9 * e + 3 * r + 2];
                for (int c = 0; c < 3; ++c) {
                    old[9 * e + 3 * r + c] = l[9 * e + 3 * r + c];
                    l[9 * e + 3 * r + c] = x * p[c] + y * p[3 + c] + z * p[6 + c];
                }
            }
        for (int e = 0; e < below; ++e)
            for (int f = 0; f <= e; ++f) {
                scalar* t = a + 9 * (*target++);
                const scalar* u = old + 9 * e;
                const scalar* v = l + 9 * f;
                for (int r = 0; r < 3; ++r)
                    for (int c = 0; c < 3; ++c)
                        t[3 * r + c] -= u[3 * r] * v[3 * c] + u[3 * r + 1] * v[3 * c + 1] + u[3 * r + 2] * v[3 * c + 2];
            }
    }
    return shifted;
"""
)
# `l` is overwritten while x, y, z of the row are already read; `old` keeps A_ik for the updates A_ik L_jkᵀ.

_SOLVE = (
    "    using scalar = decltype(inertia.data[0] + inertia.data[0]);\n"
    + f"    const scalar* __restrict__ a = {_ROW.format('blocks')};\n"
    + f"    scalar* __restrict__ b = {_ROW.format('x')};\n"
    + """
    for (int k = 0; k < n; ++k) {
        const int first = start.data[k], last = start.data[k + 1];
        const scalar x0 = b[3 * k], x1 = b[3 * k + 1], x2 = b[3 * k + 2];
        for (int e = first + 1; e < last; ++e) {
            const scalar* l = a + 9 * e;
            scalar* y = b + 3 * row.data[e];
            for (int r = 0; r < 3; ++r) y[r] -= l[3 * r] * x0 + l[3 * r + 1] * x1 + l[3 * r + 2] * x2;
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        const int first = start.data[k], last = start.data[k + 1];
        const scalar* p = a + 9 * first;
        const scalar x0 = b[3 * k], x1 = b[3 * k + 1], x2 = b[3 * k + 2];
        scalar y[3];
        for (int r = 0; r < 3; ++r) y[r] = p[3 * r] * x0 + p[3 * r + 1] * x1 + p[3 * r + 2] * x2;
        for (int e = first + 1; e < last; ++e) {
            const scalar* l = a + 9 * e;
            const scalar* z = b + 3 * row.data[e];
            for (int r = 0; r < 3; ++r) y[r] -= l[r] * z[0] + l[3 + r] * z[1] + l[6 + r] * z[2];
        }
        for (int r = 0; r < 3; ++r) b[3 * k + r] = y[r];
    }
"""
)


@wp.struct
class Factor:
    """A pattern on the device and room for the factor of each world."""

    size: int
    start: wp.array(dtype=wp.int32)
    row: wp.array(dtype=wp.int32)
    update: wp.array(dtype=wp.int32)
    inertia: wp.array2d(dtype=real)  # (W, n) what a pivot that is not positive is replaced by, at least; kg
    blocks: wp.array2d(dtype=mat33)  # (W, blocks)
    column: wp.array2d(dtype=mat33)  # (W, longest)
    vector: wp.array2d(dtype=vec3)  # (W, n) right-hand side and solution


@wp.func_native(_FACTOR)
def _factor(
    n: int,
    start: wp.array(dtype=wp.int32),
    update: wp.array(dtype=wp.int32),
    w: int,
    shift: int,
    inertia: wp.array2d(dtype=real),
    blocks: wp.array2d(dtype=mat33),
    column: wp.array2d(dtype=mat33),
) -> int:
    return 0


@wp.func_native(_SOLVE)
def _solve(
    n: int,
    start: wp.array(dtype=wp.int32),
    row: wp.array(dtype=wp.int32),
    w: int,
    inertia: wp.array2d(dtype=real),
    blocks: wp.array2d(dtype=mat33),
    x: wp.array2d(dtype=vec3),
):
    pass


@wp.func
def block_factor(f: Factor, w: int, shift: int) -> int:
    """Replaces the matrix in `blocks` by its factor; how many pivots were not positive.

    Args:
        f: Pattern and matrix.
        w: World.
        shift: Whether such pivots are replaced by positive ones; 0 leaves the factor that of the matrix.
    """
    return _factor(f.size, f.start, f.update, w, shift, f.inertia, f.blocks, f.column)


@wp.func
def block_solve(f: Factor, w: int):
    """Solves for `vector` in place, given the factor."""
    _solve(f.size, f.start, f.row, w, f.inertia, f.blocks, f.vector)
