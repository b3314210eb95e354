"""H = M + JᵀWJ of many trees: formed, factored and solved with, tree by tree, as native code. Not taped.

H = LᵀDL over the graph whose nodes are trees and whose edges are the rows that couple them. Trees are eliminated by
minimum degree, chosen once per set of rows; of equals the last comes first, which for trees that do not touch is the
order of the envelope. A tree's rows are held side by side: first the entries of the trees eliminated later that it is
coupled with, the last eliminated first, then its own. So an update of another tree's row runs along the beginning of
these rows. The diagonal holds 1/D.

The lists (in `envelope`): order of elimination, its inverse, where each tree's list of others starts, how many entries
those have, where its rows start, the lists, and a bit matrix used for the ordering and then for places.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real
from warpsim.solve.hessian_rows import START, add_rows
from warpsim.solve.rows import Rows
from warpsim.solve.sparsity import TreeSparsity

_LISTS = """
    const int trees = t.trees, words = (trees + 31) / 32;
    const int* const tree_start = t.tree_start.data;
    const int* const dof_tree = t.dof_tree.data;
    int* const order = reinterpret_cast<int*>(reinterpret_cast<char*>(envelope.data) + w * envelope.strides[0]);
    int* const place = order + trees;
    int* const first = place + trees;
    int* const width = first + trees + 1;
    int* const base = width + trees;
    int* const list = base + trees;
    int* const spare = list + trees * (trees - 1) / 2;
    auto size_of = [&](int tree) { return tree_start[tree + 1] - tree_start[tree]; };
"""

# Which trees are coupled, and in which order they go: minimum degree on a bit matrix.
_ORDER = """
    if (!known) {
        auto* const bits = reinterpret_cast<unsigned int*>(spare);
        int* const degree = width;
        auto meets = [&](int a, int b) { return bits[a * words + b / 32] >> (b % 32) & 1u; };
        for (int i = 0; i < trees * words; ++i) bits[i] = 0;
        for (int i = 0; i < trees; ++i) degree[i] = 0;
        for (int g = 0; g < groups; ++g) {
            const int c0 = p_rows_first_column[g], c1 = p_rows_first_column[g + 1];
            for (int c = c0 + 1; c < c1; ++c) {
                const int a = dof_tree[p_rows_column[c]];
                if (a == dof_tree[p_rows_column[c - 1]] && c > c0 + 1) continue;
                for (int e = c0; e < c; ++e) {
                    const int b = dof_tree[p_rows_column[e]];
                    if (a == b || meets(a, b)) continue;
                    bits[a * words + b / 32] |= 1u << (b % 32);
                    bits[b * words + a / 32] |= 1u << (a % 32);
                    ++degree[a];
                    ++degree[b];
                }
            }
        }
        int count = 0;
        for (int i = trees - 1; i >= 0; --i)
            if (degree[i] == 0) { place[i] = count; order[count++] = i; }
            else place[i] = -1;
        // those left, the last first
        int left = 0;
        int* const waiting = base;
        for (int i = trees - 1; i >= 0; --i) if (place[i] < 0) waiting[left++] = i;
        while (left > 0) {
            int best = 0;
            for (int i = 1; i < left; ++i) if (degree[waiting[i]] < degree[waiting[best]]) best = i;
            const int u = waiting[best];
            --left;
            for (int i = best; i < left; ++i) waiting[i] = waiting[i + 1];
            place[u] = count;
            order[count++] = u;
            const unsigned int* const row = bits + u * words;
            for (int i = 0; i < left; ++i) {
                const int v = waiting[i];
                if (!meets(u, v)) continue;
                unsigned int* const other = bits + v * words;
                int total = 0;
                for (int k = 0; k < words; ++k) other[k] |= row[k];
                other[v / 32] &= ~(1u << (v % 32));
                other[u / 32] &= ~(1u << (u % 32));
                for (int k = 0; k < words; ++k)
                    for (unsigned int rest = other[k]; rest; rest &= rest - 1) ++total;
                degree[v] = total;
            }
        }
        // a row of the matrix now holds the trees eliminated later that it is coupled with
        int entries = 0, filled = 0;
        for (int p = 0; p < trees; ++p) {
            const int u = order[p];
            first[p] = filled;
            int k = 0;
            for (int word = 0; word < words; ++word) {
                unsigned int rest = bits[u * words + word];
                for (int b = 0; rest; ++b, rest >>= 1) {
                    if (!(rest & 1u)) continue;
                    const int v = 32 * word + b;
                    int i = filled++;
                    for (; i > first[p] && place[list[i - 1]] < place[v]; --i) list[i] = list[i - 1];
                    list[i] = v;
                    k += size_of(v);
                }
            }
            width[p] = k;
            base[p] = entries;
            entries += size_of(u) * (k + size_of(u));
        }
        first[trees] = filled;
    }
"""

_FORM = """
    const int last = trees - 1;
    const int entries = base[last] + size_of(order[last]) * (width[last] + size_of(order[last]));
    for (int i = 0; i < entries; ++i) h[i] = 0;
    for (int d = 0; d < n; ++d) {
        const int u = dof_tree[d], p = place[u], begin = tree_start[u];
        scalar* const row = h + base[p] + (d - begin) * (width[p] + size_of(u)) + width[p];
        row[d - begin] = m[start[d]] + diagonal[d];
        for (int e = start[d] + 1; e < start[d + 1]; ++e) row[column[e] - begin] = m[e];
    }
    int row_tree = -1, column_tree = -1, offset = 0;
    auto add = [&](int i, int j, scalar value) {
        int u = dof_tree[i], v = dof_tree[j];
        if (u == v) {
            const int high = i > j ? i : j, low = i > j ? j : i, p = place[u], begin = tree_start[u];
            h[base[p] + (high - begin) * (width[p] + size_of(u)) + width[p] + low - begin] += value;
            return;
        }
        if (place[u] > place[v]) {
            const int tree = u, dof = i;
            u = v; v = tree;
            i = j; j = dof;
        }
        const int p = place[u];
        if (u != row_tree || v != column_tree) {
            row_tree = u;
            column_tree = v;
            offset = 0;
            for (int k = first[p]; list[k] != v; ++k) offset += size_of(list[k]);
        }
        h[base[p] + (i - tree_start[u]) * (width[p] + size_of(u)) + offset + j - tree_start[v]] += value;
    };
"""

_ELIMINATE = """
    scalar* const sum = h + factor.shape[1] - 2 * n;
    scalar* const ratio = sum + n;
    for (int p = 0; p < trees; ++p) {
        const int u = order[p], size = size_of(u), k = width[p], stride = k + size;
        scalar* const own = h + base[p];
        for (int a = size - 1; a >= 0; --a) {
            scalar* __restrict__ row = own + a * stride;
            if (!(row[k + a] > 0)) return 1;
            const scalar inverse = 1 / row[k + a];
            for (int b = a - 1; b >= 0; --b) {
                if (row[k + b] == 0) continue;
                const scalar share = row[k + b] * inverse;
                scalar* __restrict__ target = own + b * stride;
                for (int f = 0; f <= k + b; ++f) target[f] -= share * row[f];
                row[k + b] = share;
            }
            row[k + a] = inverse;
        }
        int before = 0;  // entries of the trees before v
        for (int i = first[p]; i < first[p + 1]; ++i) {
            const int v = list[i], q = place[v], stride_v = width[q] + size_of(v);
            // where the trees before v stand in v's rows; both lists have the same order
            int at = 0, offset_v = 0;
            for (int j = first[p], l = first[q]; j < i; ++j) {
                for (; list[l] != list[j]; ++l) offset_v += size_of(list[l]);
                spare[at++] = offset_v;
            }
            for (int c = 0; c < size_of(v); ++c) {
                const int length = before + c + 1;
                bool any = false;
                for (int a = 0; a < size; ++a) {
                    const scalar value = own[a * stride + before + c];
                    ratio[a] = value * own[a * stride + k + a];
                    any = any || value != 0;
                }
                if (!any) continue;
                if (size == 6) {
                    const scalar r0 = ratio[0], r1 = ratio[1], r2 = ratio[2];
                    const scalar r3 = ratio[3], r4 = ratio[4], r5 = ratio[5];
                    const scalar* __restrict__ x0 = own;
                    const scalar* __restrict__ x1 = own + stride;
                    const scalar* __restrict__ x2 = own + 2 * stride;
                    const scalar* __restrict__ x3 = own + 3 * stride;
                    const scalar* __restrict__ x4 = own + 4 * stride;
                    const scalar* __restrict__ x5 = own + 5 * stride;
                    scalar* __restrict__ out = sum;
                    for (int f = 0; f < length; ++f)
                        out[f] = ((r0 * x0[f] + r1 * x1[f]) + (r2 * x2[f] + r3 * x3[f])) + (r4 * x4[f] + r5 * x5[f]);
                } else {
                    for (int f = 0; f < length; ++f) sum[f] = 0;
                    for (int a = 0; a < size; ++a) {
                        const scalar* __restrict__ x = own + a * stride;
                        const scalar r = ratio[a];
                        scalar* __restrict__ out = sum;
                        for (int f = 0; f < length; ++f) out[f] += r * x[f];
                    }
                }
                scalar* const target = h + base[q] + c * stride_v;
                int from = 0;
                for (int j = first[p]; j < i; ++j) {
                    scalar* __restrict__ part = target + spare[j - first[p]];
                    const scalar* __restrict__ x = sum + from;
                    const int count = size_of(list[j]);
                    for (int f = 0; f < count; ++f) part[f] -= x[f];
                    from += count;
                }
                for (int f = 0; f <= c; ++f) target[width[q] + f] -= sum[from + f];
            }
            before += size_of(v);
        }
        for (int a = 0; a < size; ++a) {
            scalar* __restrict__ row = own + a * stride;
            const scalar inverse = row[k + a];
            for (int f = 0; f < k; ++f) row[f] *= inverse;
        }
    }
    return 0;
"""

# x ← (LᵀDL)⁻¹ x
_SOLVE = (
    """
    using scalar = decltype(factor.data[0] + factor.data[0]);
    scalar* const h = reinterpret_cast<scalar*>(reinterpret_cast<char*>(factor.data) + w * factor.strides[0]);
    scalar* const px = reinterpret_cast<scalar*>(reinterpret_cast<char*>(x.data) + w * x.strides[0]);
"""
    + _LISTS
    + """
    scalar* const z = h + factor.shape[1] - 2 * t.nv;  // x of the trees that one is coupled with
    for (int p = 0; p < trees; ++p) {
        const int u = order[p], size = size_of(u), k = width[p], stride = k + size;
        const scalar* const own = h + base[p];
        scalar* const xu = px + tree_start[u];
        for (int f = 0; f < k; ++f) z[f] = 0;
        for (int a = size - 1; a >= 0; --a) {
            const scalar* __restrict__ row = own + a * stride;
            const scalar value = xu[a];
            for (int b = 0; b < a; ++b) xu[b] -= row[k + b] * value;
            scalar* __restrict__ out = z;
            for (int f = 0; f < k; ++f) out[f] += row[f] * value;
        }
        int from = 0;
        for (int i = first[p]; i < first[p + 1]; ++i) {
            scalar* const xv = px + tree_start[list[i]];
            for (int c = 0; c < size_of(list[i]); ++c) xv[c] -= z[from++];
        }
    }
    for (int p = trees - 1; p >= 0; --p) {
        const int u = order[p], size = size_of(u), k = width[p], stride = k + size;
        const scalar* const own = h + base[p];
        scalar* const xu = px + tree_start[u];
        int from = 0;
        for (int i = first[p]; i < first[p + 1]; ++i) {
            const scalar* const xv = px + tree_start[list[i]];
            for (int c = 0; c < size_of(list[i]); ++c) z[from++] = xv[c];
        }
        for (int a = 0; a < size; ++a) {
            const scalar* __restrict__ row = own + a * stride;
            // four partial sums: independent, so they can run side by side, in a fixed order
            scalar s0 = 0, s1 = 0, s2 = 0, s3 = 0;
            int f = 0;
            for (; f + 3 < k; f += 4) {
                s0 += row[f] * z[f];
                s1 += row[f + 1] * z[f + 1];
                s2 += row[f + 2] * z[f + 2];
                s3 += row[f + 3] * z[f + 3];
            }
            for (; f < k; ++f) s0 += row[f] * z[f];
            for (int b = 0; b < a; ++b) s1 += row[k + b] * xu[b];
            xu[a] = xu[a] * row[k + a] - ((s0 + s1) + (s2 + s3));
        }
    }
"""
)


# Never inlined: few trees take the envelope, and these long functions would stand in its way.
_APART = """
#if defined(__clang__) && !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#define APART __attribute__((noinline))
#else
#define APART
#endif
"""


@wp.func_native(
    _APART
    + "    auto run = [&]() APART -> int {\n"
    + START
    + _LISTS
    + _ORDER
    + _FORM
    + add_rows("add(i, j, i == j && e != c ? 2 * total : total);")
    + _ELIMINATE
    + "    };\n    return run();\n"
)
def factor_forest(
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
    """As `HessianStorage.factor`; with `known` the order stays too."""
    return 0


@wp.func_native(_APART + "    auto run = [&]() APART {\n" + _SOLVE + "    };\n    run();\n")
def solve_forest(
    t: TreeSparsity,
    w: int,
    factor: wp.array2d(dtype=real),
    envelope: wp.array2d(dtype=wp.int32),
    x: wp.array2d(dtype=real),
):
    """As `HessianStorage.solve`; the end of `factor` is scratch."""
