"""Multifrontal LDLᵀ and its solves on one world, as native code. Not taped.

Per front a column-major panel of its pivots' columns, kept for the solve, and an update matrix (the Schur complement of
the rows below), which lives until the parent has summed it. Rows come in groups of eight, so that all inner loops run
over whole groups: those that begin within a group compute a few entries above what is asked for, which are put back or
never read. A panel holds L below its diagonal, 1/D on it, zeros above. Every entry is one sum in a fixed order.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3
from warpsim.solve.block_ldl.plan import BlockPlan

# Eight numbers side by side; elsewhere than in clang on a processor a plain array does.
_VECTOR = """
    using scalar = decltype(work.data[0] + work.data[0]);
#if defined(__clang__) && !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
    typedef scalar V __attribute__((ext_vector_type(8), aligned(sizeof(scalar))));
#define WIDE __attribute__((min_vector_width(512)))
#else
    struct V {
        scalar x[8];
        CUDA_CALLABLE scalar& operator[](int i) { return x[i]; }
        CUDA_CALLABLE V operator*(scalar s) const { V r; for (int i = 0; i < 8; ++i) r.x[i] = x[i] * s; return r; }
        CUDA_CALLABLE V operator*(V b) const { for (int i = 0; i < 8; ++i) b.x[i] *= x[i]; return b; }
        CUDA_CALLABLE V operator-() const { V r; for (int i = 0; i < 8; ++i) r.x[i] = -x[i]; return r; }
        CUDA_CALLABLE void operator+=(const V& b) { for (int i = 0; i < 8; ++i) x[i] += b.x[i]; }
        CUDA_CALLABLE void operator-=(const V& b) { for (int i = 0; i < 8; ++i) x[i] -= b.x[i]; }
    };
#define WIDE
#endif
    struct One { enum { v = 1 }; };
    struct Two { enum { v = 2 }; };
    struct Three { enum { v = 3 }; };
    struct Four { enum { v = 4 }; };
    struct Six { enum { v = 6 }; };
    auto vec = [](scalar* p) -> V& { return *reinterpret_cast<V*>(p); };
    auto cvec = [](const scalar* p) -> const V& { return *reinterpret_cast<const V*>(p); };
    auto zeros = []() { V z; for (int i = 0; i < 8; ++i) z[i] = 0; return z; };
    auto of_world = [&](auto& array) {
        return reinterpret_cast<char*>(array.data) + static_cast<size_t>(w) * array.strides[0];
    };
    const int* front = plan.front.data;
"""

_FACTOR = (
    _VECTOR
    + """
    scalar* const panels_of_world = reinterpret_cast<scalar*>(of_world(panels));
    scalar* const updates = reinterpret_cast<scalar*>(of_world(work));
    scalar* const W = updates + plan.update_size;
    const scalar* const on_diagonal = reinterpret_cast<scalar*>(of_world(diagonal));
    const scalar* const off_diagonal = reinterpret_cast<scalar*>(of_world(coupling));
    const scalar smallest = sizeof(scalar) == 8 ? scalar(1e-14) : scalar(1e-6);
    int wrong = 0;

    // C (8·R rows × N columns) += A Bᵀ over `depth` columns of A and B
    auto tile = [&](auto groups, auto columns, int depth, const scalar* A, const scalar* B, int lead, scalar* C,
                    int lead_c, bool fresh) WIDE {
        constexpr int R = decltype(groups)::v, N = decltype(columns)::v;
        V sum[N][R];
        for (int n = 0; n < N; ++n)
            for (int r = 0; r < R; ++r) sum[n][r] = fresh ? zeros() : cvec(C + n * lead_c + 8 * r);
        for (int d = 0; d < depth; ++d) {
            V a[R];
            for (int r = 0; r < R; ++r) a[r] = cvec(A + 8 * r);
            for (int n = 0; n < N; ++n) {
                const scalar b = B[n];
                for (int r = 0; r < R; ++r) sum[n][r] += a[r] * b;
            }
            A += lead;
            B += lead;
        }
        for (int n = 0; n < N; ++n)
            for (int r = 0; r < R; ++r) vec(C + n * lead_c + 8 * r) = sum[n][r];
    };
    auto strip = [&](auto columns, int depth, const scalar* A, const scalar* B, int lead, scalar* C, int lead_c,
                     int rows, bool fresh) WIDE {
#if defined(__AVX512F__)
        for (; rows >= 32; rows -= 32, A += 32, C += 32)
            tile(Four(), columns, depth, A, B, lead, C, lead_c, fresh);
        if (rows >= 24) tile(Three(), columns, depth, A, B, lead, C, lead_c, fresh);
        else if (rows >= 16) tile(Two(), columns, depth, A, B, lead, C, lead_c, fresh);
        else if (rows >= 8) tile(One(), columns, depth, A, B, lead, C, lead_c, fresh);
#else
        for (; rows >= 8; rows -= 8, A += 8, C += 8) tile(One(), columns, depth, A, B, lead, C, lead_c, fresh);
#endif
    };

    // columns j … j + N of a panel, given all before them
    auto eliminate = [&](auto columns, int j, scalar* P, int lead, int first) WIDE {
        constexpr int N = decltype(columns)::v;
        const int above = j & ~7;
        scalar* const Pj = P + static_cast<size_t>(j) * lead;
        scalar* const Wj = W + static_cast<size_t>(j) * lead;
        if (j) strip(columns, j, P + above, W + j, lead, Pj + above, lead, lead - above, false);
        scalar l[N][N], inverse[N];
        for (int c = 0; c < N; ++c)
            for (int r = c; r < N; ++r) l[r][c] = Pj[c * lead + j + r];
        for (int c = 0; c < N; ++c) {
            scalar d = l[c][c];
            const int block = plan.order.data[first + (j + c) / 3], axis = (j + c) % 3;
            const scalar entry = on_diagonal[9 * block + 4 * axis], own = entry < 0 ? -entry : entry;
            if (!(d > smallest * own)) {
                ++wrong;
                const scalar size = d < 0 ? -d : d;
                if (shift > 0) d = size > shift * own ? size : shift * own;
            }
            inverse[c] = 1 / d;
            for (int r = c + 1; r < N; ++r) {
                const scalar ratio = l[r][c] * inverse[c];
                for (int e = c + 1; e <= r; ++e) l[r][e] -= ratio * (e == r ? l[r][c] : l[e][c]);
            }
            for (int r = c + 1; r < N; ++r) l[r][c] *= inverse[c];
        }
        for (int i = above; i < lead; i += 8) {
            V y[N];
            for (int c = 0; c < N; ++c) {
                y[c] = cvec(Pj + c * lead + i);
                for (int e = 0; e < c; ++e) y[c] -= y[e] * l[c][e];
                vec(Pj + c * lead + i) = y[c] * inverse[c];
                vec(Wj + c * lead + i) = -y[c];
            }
        }
        for (int c = 0; c < N; ++c) {
            scalar* const column = Pj + c * lead;
            for (int r = above; r < j + c; ++r) column[r] = 0;
            column[j + c] = inverse[c];
            for (int r = c + 1; r < N; ++r) column[j + r] = l[r][c];
        }
    };

    for (int f = 0; f < plan.fronts; ++f) {
        const int* own = front + 8 * f;
        const int first = own[0], k = own[1], m = own[2], lead = (m + 7) & ~7, under = m - k;
        const int skip = k & ~7, lead_u = lead - skip;
        scalar* const P = panels_of_world + own[3];
        scalar* const U = updates + own[4];  // row r of the front at r − skip
        for (int i = 0; i < lead * k; i += 8) vec(P + i) = zeros();
        const bool fresh = own[7] == own[15];
        if (!fresh) for (int i = 0; i < lead_u * under; i += 8) vec(U + i) = zeros();
        for (int e = own[7]; e < own[15]; ++e) {
            const int child = plan.child.data[e];
            const int* theirs = front + 8 * child;
            const int kc = theirs[1], mc = theirs[2], skip_c = kc & ~7, lead_c = ((mc + 7) & ~7) - skip_c;
            const scalar* const source = updates + theirs[4] + kc - skip_c;
            const int runs = plan.first_run.data[child + 1];
            for (int a = plan.first_run.data[child]; a < runs; ++a) {
                const int* run = plan.run.data + 3 * a;
                for (int c = 0; c < 3 * run[2]; ++c) {
                    const int from = 3 * run[0] + c, to = 3 * run[1] + c;
                    const scalar* __restrict__ column = source + static_cast<size_t>(from) * lead_c;
                    scalar* __restrict__ target =
                        to < k ? P + static_cast<size_t>(to) * lead : U + static_cast<size_t>(to - k) * lead_u - skip;
                    for (int r = c; r < 3 * run[2]; ++r) target[3 * run[1] + r] += column[3 * run[0] + r];
                    for (int b = a + 1; b < runs; ++b) {
                        const int* part = plan.run.data + 3 * b;
                        const scalar* __restrict__ x = column + 3 * part[0];
                        scalar* __restrict__ y = target + 3 * part[1];
                        for (int r = 0; r < 3 * part[2]; ++r) y[r] += x[r];
                    }
                }
            }
        }
        for (int p = 0; p < k / 3; ++p) {
            const scalar* block = on_diagonal + 9 * plan.order.data[first + p];
            for (int c = 0; c < 3; ++c)
                for (int r = c; r < 3; ++r) P[(3 * p + c) * lead + 3 * p + r] += block[3 * r + c];
        }
        for (int e = own[6]; e < own[14]; ++e) {
            const int* entry = plan.entry.data + 3 * e;
            const scalar* block = off_diagonal + 9 * entry[0];
            scalar* target = P + entry[1];
            for (int c = 0; c < 3; ++c)
                for (int r = 0; r < 3; ++r) target[c * lead + r] += entry[2] ? block[3 * c + r] : block[3 * r + c];
        }
        int j = 0;
        for (; j + 6 <= k; j += 6) eliminate(Six(), j, P, lead, first);
        if (j < k) eliminate(Three(), j, P, lead, first);
        int c = 0;
        for (; c < under; c += 6) {
            const int above = (k + c) & ~7;
            scalar* const target = U + static_cast<size_t>(c) * lead_u + above - skip;
            if (c + 6 <= under) strip(Six(), k, P + above, W + k + c, lead, target, lead_u, lead - above, fresh);
            else strip(Three(), k, P + above, W + k + c, lead, target, lead_u, lead - above, fresh);
        }
    }
    return wrong;
"""
)

_SOLVE = (
    _VECTOR
    + """
    const scalar* const panels_of_world = reinterpret_cast<scalar*>(of_world(panels));
    scalar* const px = reinterpret_cast<scalar*>(of_world(x));
    scalar* const z = reinterpret_cast<scalar*>(of_world(work));  // the solution in order of elimination
    scalar* const t = z + ((3 * plan.blocks + 7) & ~7);
    for (int i = 0; i < plan.blocks; ++i)
        for (int c = 0; c < 3; ++c) z[3 * i + c] = px[3 * plan.order.data[i] + c];

    // L y = b, columns j … j + N of a front
    auto forward = [&](auto columns, int j, const scalar* P, int lead) WIDE {
        constexpr int N = decltype(columns)::v;
        const scalar* const Pj = P + static_cast<size_t>(j) * lead;
        scalar y[N], kept[8];
        for (int c = 0; c < N; ++c) {
            y[c] = t[j + c];
            for (int e = 0; e < c; ++e) y[c] -= Pj[e * lead + j + c] * y[e];
            t[j + c] = y[c];
        }
        const int above = (j + N) & ~7;
        for (int r = above; r < j + N; ++r) kept[r - above] = t[r];
        for (int i = above; i < lead; i += 8) {
            V sum = cvec(t + i);
            for (int c = 0; c < N; ++c) sum -= cvec(Pj + c * lead + i) * y[c];
            vec(t + i) = sum;
        }
        for (int r = above; r < j + N; ++r) t[r] = kept[r - above];
    };
    // Lᵀ x = D⁻¹ y
    auto backward = [&](auto columns, int j, const scalar* P, int lead) WIDE {
        constexpr int N = decltype(columns)::v;
        const scalar* const Pj = P + static_cast<size_t>(j) * lead;
        V sum[N];
        for (int c = 0; c < N; ++c) sum[c] = zeros();
        scalar y[N], kept[8];
        for (int c = 0; c < N; ++c) y[c] = t[j + c];
        const int above = (j + N) & ~7;
        for (int r = above; r < j + N; ++r) { kept[r - above] = t[r]; t[r] = 0; }
        for (int i = above; i < lead; i += 8) {
            const V value = cvec(t + i);
            for (int c = 0; c < N; ++c) sum[c] += cvec(Pj + c * lead + i) * value;
        }
        for (int r = above; r < j + N; ++r) t[r] = kept[r - above];
        for (int c = N - 1; c >= 0; --c) {
            V& s = sum[c];
            const scalar below = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
            scalar value = y[c] * Pj[c * lead + j + c] - below;
            for (int e = c + 1; e < N; ++e) value -= Pj[c * lead + j + e] * y[e];
            y[c] = value;
            t[j + c] = value;
        }
    };
    for (int f = 0; f < plan.fronts; ++f) {
        const int* own = front + 8 * f;
        const int first = own[0], k = own[1], m = own[2], lead = (m + 7) & ~7;
        const scalar* const P = panels_of_world + own[3];
        const int* row = plan.row.data + own[5];
        for (int i = 0; i < k; ++i) t[i] = z[3 * first + i];
        for (int i = k; i < lead; ++i) t[i] = 0;
        int j = 0;
        for (; j + 6 <= k; j += 6) forward(Six(), j, P, lead);
        if (j < k) forward(Three(), j, P, lead);
        for (int i = 0; i < k; ++i) z[3 * first + i] = t[i];
        for (int i = 0; i < (m - k) / 3; ++i)
            for (int c = 0; c < 3; ++c) z[3 * row[i] + c] += t[k + 3 * i + c];
    }
    for (int f = plan.fronts - 1; f >= 0; --f) {
        const int* own = front + 8 * f;
        const int first = own[0], k = own[1], m = own[2], lead = (m + 7) & ~7;
        const scalar* const P = panels_of_world + own[3];
        const int* row = plan.row.data + own[5];
        for (int i = 0; i < k; ++i) t[i] = z[3 * first + i];
        for (int i = 0; i < (m - k) / 3; ++i)
            for (int c = 0; c < 3; ++c) t[k + 3 * i + c] = z[3 * row[i] + c];
        for (int i = m; i < lead; ++i) t[i] = 0;
        int j = k / 6 * 6;
        if (j < k) backward(Three(), j, P, lead);
        for (j -= 6; j >= 0; j -= 6) backward(Six(), j, P, lead);
        for (int i = 0; i < k; ++i) z[3 * first + i] = t[i];
    }
    for (int i = 0; i < plan.blocks; ++i)
        for (int c = 0; c < 3; ++c) px[3 * plan.order.data[i] + c] = z[3 * i + c];
"""
)


@wp.func_native(_FACTOR)
def block_factor(
    plan: BlockPlan,
    w: int,
    diagonal: wp.array2d(dtype=mat33),
    coupling: wp.array2d(dtype=mat33),
    shift: real,
    panels: wp.array2d(dtype=real),
    work: wp.array2d(dtype=real),
) -> int:
    """Factors A of world w; returns how many pivots are not positive, to rounding of the diagonal entry of A.

    Args:
        plan: Symbolic factor.
        w: World.
        diagonal: (W, n), of which the lower triangle is read.
        coupling: (W, m): block (i, j) of the pattern's pair (i, j).
        shift: If above 0, a pivot d that is not positive becomes max(|d|, shift·|a|), a the diagonal entry of A:
            A with a larger diagonal. At 0 it stays, and the factor is that of an indefinite A.
        panels: The factor, written.
        work: Scratch.
    """
    return 0


@wp.func_native(_SOLVE)
def block_solve(
    plan: BlockPlan,
    w: int,
    panels: wp.array2d(dtype=real),
    work: wp.array2d(dtype=real),
    x: wp.array2d(dtype=vec3),
):
    """Solves A x = b in place in world w, given the factor; x is in the pattern's order."""
