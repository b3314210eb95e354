"""Broad phase, untaped: which pairs are near enough for a narrow phase, in the order of the pair table.

Sweep and prune over the shapes' bounding balls: sorted along the axis on which they are spread widest, each is compared
with those that begin before it ends. It lets through every pair that `bounds_apart`, with which each narrow phase
begins, lets through; so contacts, their order and their bits are those of a search over all pairs. Nothing is kept from
one call to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.bounds import bounding_radius
from warpsim.collision.kinds import PLANE
from warpsim.collision.near import NearPairs
from warpsim.core.indexing import natural
from warpsim.core.precision import EPSILON, real, vec3

wp.set_module_options({"enable_backward": False})

MIN_PAIRS = 200
"""Tables of fewer pairs are searched as a whole: the sweep would cost more than it saves."""
_LANES = {"cpu": 16, "cuda": 1024}
"""Threads that share a group's near pairs of one world, by kind of device: on a CPU they run one after another."""
_WORD = 64


@wp.struct
class SweepLists:
    """Fixed data of the sweep."""

    shape: wp.array(dtype=wp.int32)  # (n,) bounded shapes that are in a pair
    pair_at: wp.array2d(dtype=wp.int32)  # (ns, ns) pair of two shapes, or −1
    unbounded: wp.array(dtype=wp.int64)  # (words,) a bit per pair: 1 where one shape has no bounds
    group_first: wp.array(dtype=wp.int32)  # (groups + 1,) first pair of each group


@wp.struct
class SweepWork:
    """Scratch of the sweep."""

    radius: wp.array2d(dtype=real)  # (W, ns)
    key: wp.array2d(dtype=real)  # (W, 2n)
    order: wp.array2d(dtype=wp.int32)  # (W, 2n)
    near: wp.array2d(dtype=wp.int64)  # (W, words) a bit per pair


_SWEEP = """
    using scalar = decltype(work.key.data[0] + work.key.data[0]);
    auto of_world = [&](auto& array) {
        return reinterpret_cast<char*>(array.data) + static_cast<size_t>(w) * array.strides[0];
    };
    const scalar* const center = reinterpret_cast<scalar*>(of_world(position));
    const scalar* const radius = reinterpret_cast<scalar*>(of_world(work.radius));
    const scalar* const margins = reinterpret_cast<scalar*>(of_world(margin));
    scalar* key = reinterpret_cast<scalar*>(of_world(work.key));
    int* order = reinterpret_cast<int*>(of_world(work.order));
    auto* const bits = reinterpret_cast<unsigned long long*>(of_world(work.near));
    const int n = static_cast<int>(lists.shape.shape[0]), pairs = static_cast<int>(margin.shape[1]);
    const int words = static_cast<int>(lists.unbounded.shape[0]);
    const int shapes = static_cast<int>(lists.pair_at.shape[1]);
    const int* const shape = lists.shape.data;
    for (int i = 0; i < words; ++i) bits[i] = lists.unbounded.data[i];

    scalar reach[4] = {margins[0], margins[0], margins[0], margins[0]};
    int p = 0;
    for (; p + 3 < pairs; p += 4)
        for (int k = 0; k < 4; ++k) reach[k] = margins[p + k] > reach[k] ? margins[p + k] : reach[k];
    for (; p < pairs; ++p) reach[0] = margins[p] > reach[0] ? margins[p] : reach[0];
    for (int k = 1; k < 4; ++k) reach[0] = reach[k] > reach[0] ? reach[k] : reach[0];
    const scalar largest = reach[0] > 0 ? reach[0] : scalar(0);

    int axis = 0;
    scalar widest = -1;
    for (int k = 0; k < 3; ++k) {
        scalar low = 0, high = 0;
        for (int i = 0; i < n; ++i) {
            const scalar x = center[3 * shape[i] + k];
            if (i == 0 || x < low) low = x;
            if (i == 0 || x > high) high = x;
        }
        if (high - low > widest) { widest = high - low; axis = k; }
    }

    // merge sort by where a ball begins; equal ones keep their order
    for (int i = 0; i < n; ++i) {
        key[i] = center[3 * shape[i] + axis] - radius[shape[i]];
        order[i] = shape[i];
    }
    scalar* other_key = key + n;
    int* other_order = order + n;
    for (int width = 1; width < n; width *= 2) {
        for (int start = 0; start < n; start += 2 * width) {
            const int middle = start + width < n ? start + width : n, end = middle + width < n ? middle + width : n;
            int a = start, b = middle;
            for (int i = start; i < end; ++i) {
                const bool second = a >= middle || (b < end && key[b] < key[a]);
                const int from = second ? b++ : a++;
                other_key[i] = key[from];
                other_order[i] = order[from];
            }
        }
        scalar* const swapped_key = key; key = other_key; other_key = swapped_key;
        int* const swapped_order = order; order = other_order; other_order = swapped_order;
    }

    // a little farther than what counts, so that rounding drops no pair
    const scalar wider = 1 + slack;
    for (int i = 0; i < n; ++i) {
        const int a = order[i];
        const scalar* ca = center + 3 * a;
        const scalar end = ca[axis] + radius[a] + largest;
        const scalar size = end < 0 ? -end : end;
        const scalar last = end + slack * (size + radius[a] + largest);
        const int* row = lists.pair_at.data + static_cast<size_t>(a) * shapes;
        for (int j = i + 1; j < n && !(key[j] > last); ++j) {
            const int b = order[j];
            const scalar* cb = center + 3 * b;
            const scalar x = cb[0] - ca[0], y = cb[1] - ca[1], z = cb[2] - ca[2];
            const scalar apart = (radius[a] + radius[b] + largest) * wider;
            if (x * x + y * y + z * z > apart * apart) continue;
            const int pair = row[b];
            if (pair >= 0) bits[pair / 64] |= 1ull << (pair % 64);
        }
    }

    int* const list = reinterpret_cast<int*>(of_world(near.pair));
    int* const first = reinterpret_cast<int*>(of_world(near.first));
    const int groups = static_cast<int>(lists.group_first.shape[0]) - 1;
    int count = 0, group = 0;
    for (int i = 0; i < words; ++i) {
        unsigned long long left = bits[i];
        while (left) {
#if defined(__CUDA_ARCH__)
            const int pair = 64 * i + __ffsll(static_cast<long long>(left)) - 1;
#else
            const int pair = 64 * i + __builtin_ctzll(left);
#endif
            left &= left - 1;
            while (group <= groups && lists.group_first.data[group] <= pair) first[group++] = count;
            list[count++] = pair;
        }
    }
    while (group <= groups) first[group++] = count;
"""


@wp.func_native(_SWEEP)
def _sweep(
    lists: SweepLists,
    w: int,
    slack: real,
    position: wp.array2d(dtype=vec3),
    margin: wp.array2d(dtype=real),
    work: SweepWork,
    near: NearPairs,
):
    """Near pairs of world w; `slack`: share by which bounds are widened."""


@wp.kernel(enable_backward=False)
def _radius_kernel(
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    shape_size: wp.array2d(dtype=vec3),
    radius: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    radius[w, i] = bounding_radius(shape_kind[i], shape_size[w, i], shape_unit_radius[i])


@wp.kernel(enable_backward=False)
def _sweep_kernel(
    lists: SweepLists,
    slack: real,
    position: wp.array2d(dtype=vec3),
    margin: wp.array2d(dtype=real),
    work: SweepWork,
    near: NearPairs,
):
    w = natural(wp.tid())
    _sweep(lists, w, slack, position, margin, work, near)


@dataclass(frozen=True)
class BroadPhase:
    """The near pairs of some worlds, and how they are found; without a sweep all pairs are near."""

    near: NearPairs
    lists: SweepLists | None
    work: SweepWork | None

    @staticmethod
    def allocate(
        pair_shapes: np.ndarray, shape_kind: np.ndarray, group_first: list[int], worlds: int, device: wp.DeviceLike
    ) -> BroadPhase:
        """Makes the lists.

        Args:
            pair_shapes: (np, 2) shapes of each pair.
            shape_kind: (ns,) codes of `kinds`.
            group_first: First pair of each group, and the number of pairs.
            worlds: Worlds to search at once.
            device: Where the arrays live.
        """
        pairs, shapes = len(pair_shapes), len(shape_kind)
        near = NearPairs()
        near.pair = _integers(np.tile(np.arange(pairs), (worlds, 1)), device)
        near.lanes = _LANES["cuda" if wp.get_device(device).is_cuda else "cpu"]
        near.first = _integers(np.tile(np.array(group_first), (worlds, 1)), device)
        pair_at = np.full((shapes, shapes), -1)
        pair_at[pair_shapes[:, 0], pair_shapes[:, 1]] = np.arange(pairs)
        pair_at[pair_shapes[:, 1], pair_shapes[:, 0]] = np.arange(pairs)
        once = (pair_at[pair_shapes[:, 0], pair_shapes[:, 1]] == np.arange(pairs)).all()
        if pairs < MIN_PAIRS or not once:  # a question may be asked twice, contacts are not
            return BroadPhase(near, None, None)
        flat = shape_kind == int(PLANE)
        words = -(-pairs // _WORD)
        lists, work = SweepLists(), SweepWork()
        lists.shape = _integers(np.array([i for i in np.unique(pair_shapes) if not flat[i]]), device)
        lists.pair_at = _integers(pair_at, device)
        unbounded = np.zeros(words * _WORD, np.uint8)
        unbounded[:pairs] = flat[pair_shapes].any(1)
        bits = np.packbits(unbounded, bitorder="little").view(np.int64)
        lists.unbounded = wp.array(bits, dtype=wp.int64, device=device)
        lists.group_first = _integers(np.array(group_first), device)
        count = lists.shape.shape[0]
        work.radius = wp.zeros((worlds, shapes), dtype=real, device=device)
        work.key = wp.zeros((worlds, 2 * count), dtype=real, device=device)
        work.order = wp.zeros((worlds, 2 * count), dtype=wp.int32, device=device)
        work.near = wp.zeros((worlds, words), dtype=wp.int64, device=device)
        return BroadPhase(near, lists, work)

    def find(
        self,
        shape_kind: wp.array,
        shape_unit_radius: wp.array,
        position: wp.array,
        size: wp.array,
        margin: wp.array,
    ) -> None:
        """Writes `near`, untaped.

        Args:
            shape_kind: (ns,).
            shape_unit_radius: (ns,), m.
            position: (W, ns) vec3, m.
            size: (W, ns) vec3.
            margin: (W, np), m: contacts are active where their distance is less.
        """
        if self.lists is None or self.work is None:
            return
        worlds, device = position.shape[0], position.device
        wp.launch(
            _radius_kernel,
            dim=self.work.radius.shape,
            inputs=[shape_kind, shape_unit_radius, size],
            outputs=[self.work.radius],
            device=device,
            record_tape=False,
        )
        wp.launch(
            _sweep_kernel,
            dim=worlds,
            inputs=[self.lists, 64.0 * EPSILON, position, margin],
            outputs=[self.work, self.near],
            device=device,
            record_tape=False,
        )


def _integers(values: np.ndarray, device: wp.DeviceLike) -> wp.array:
    return wp.array(np.ascontiguousarray(values, np.int32), dtype=wp.int32, device=device)
