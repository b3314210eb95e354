"""A net of springs whose launches are divided, adjoints included: one world for several threads."""

from __future__ import annotations

import numpy as np
import warp as wp

from warpsim.tape import Arena, Arrays, Field
from warpsim.tape.divided import launch_divided

vec3 = wp.vec3d
real = wp.float64


@wp.func
def _signed(end: int, value: vec3) -> vec3:
    """What an end of a spring feels: the pull at ends of even number, its opposite at the others."""
    if end % 2 == 0:
        return value
    return -value


@wp.func
def _pull(stiffness: real, rest: real, d: vec3) -> vec3:
    length = wp.length(d)
    return (stiffness * (length - rest) / length) * d


@wp.kernel(enable_backward=False)
def _spring_kernel(
    first: int,
    ends: wp.array2d(dtype=wp.int32),
    rest: wp.array(dtype=real),
    stiffness: wp.array2d(dtype=real),
    x: wp.array2d(dtype=vec3),
    force: wp.array(dtype=vec3),
):
    s = first + wp.tid()
    force[s] = _pull(stiffness[0, s], rest[s], x[0, ends[s, 1]] - x[0, ends[s, 0]])


@wp.kernel(enable_backward=False)
def _node_kernel(
    first: int,
    start: wp.array(dtype=wp.int32),
    end: wp.array(dtype=wp.int32),
    step: real,
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    force: wp.array(dtype=vec3),
    x_next: wp.array2d(dtype=vec3),
    v_next: wp.array2d(dtype=vec3),
):
    i = first + wp.tid()
    total = vec3(real(0.0), real(0.0), real(-0.1))
    for k in range(start[i], start[i + 1]):
        total += _signed(end[k], force[end[k] // 2])
    moved = v[0, i] + step * total
    v_next[0, i] = moved
    x_next[0, i] = x[0, i] + step * moved


@wp.kernel(enable_backward=False)
def _node_adjoint_kernel(
    first: int,
    step: real,
    x_next: wp.array2d(dtype=vec3),
    v_next: wp.array2d(dtype=vec3),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    total: wp.array(dtype=vec3),
):
    i = first + wp.tid()
    moved = v_next[0, i] + step * x_next[0, i]
    x[0, i] = x[0, i] + x_next[0, i]
    v[0, i] = v[0, i] + moved
    total[i] = step * moved


@wp.kernel(enable_backward=False)
def _spring_adjoint_kernel(
    first: int,
    ends: wp.array2d(dtype=wp.int32),
    rest: wp.array(dtype=real),
    stiffness: wp.array2d(dtype=real),
    x: wp.array2d(dtype=vec3),
    total: wp.array(dtype=vec3),
    by_stiffness: wp.array2d(dtype=real),
    by_difference: wp.array(dtype=vec3),
):
    s = first + wp.tid()
    u = total[ends[s, 0]] - total[ends[s, 1]]
    d = x[0, ends[s, 1]] - x[0, ends[s, 0]]
    length = wp.length(d)
    along = d / length
    k = stiffness[0, s]
    by_stiffness[0, s] = by_stiffness[0, s] + (length - rest[s]) * wp.dot(along, u)
    by_difference[s] = k * (real(1.0) - rest[s] / length) * u + k * rest[s] / length * wp.dot(along, u) * along


@wp.kernel(enable_backward=False)
def _gather_adjoint_kernel(
    first: int,
    start: wp.array(dtype=wp.int32),
    end: wp.array(dtype=wp.int32),
    by_difference: wp.array(dtype=vec3),
    x: wp.array2d(dtype=vec3),
):
    i = first + wp.tid()
    total = x[0, i]
    for k in range(start[i], start[i + 1]):
        total -= _signed(end[k], by_difference[end[k] // 2])
    x[0, i] = total


class DividedNet:
    """`side` × `side` nodes of unit mass, joined along the mesh and across its cells.

    Forces and what their adjoint passes on are needed within a step alone, so all slots share them. Springs are
    numbered by their nodes: what a thread writes it reads itself, but for a row of nodes between two threads.
    """

    divisible = True
    worlds = 1
    inputs = outputs = ()

    def __init__(self, side: int, smallest: int = 16) -> None:
        self.device = wp.get_device("cpu")
        self.nodes, self._smallest = side * side, smallest
        self.state = (Field("x", (1, self.nodes), vec3), Field("v", (1, self.nodes), vec3))
        number = np.arange(self.nodes).reshape(side, side)
        across = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
        across += [(number[:-1, :-1], number[1:, 1:]), (number[1:, :-1], number[:-1, 1:])]
        ends = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in across])
        ends = ends[np.argsort(ends.min(1), kind="stable")]  # a thread's springs are those of its nodes
        grid = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), -1).reshape(-1, 2)
        self.flat = np.concatenate([grid, np.zeros((self.nodes, 1))], 1) * 0.1
        lengths = np.linalg.norm(self.flat[ends[:, 0]] - self.flat[ends[:, 1]], axis=1)
        self.springs = len(ends)
        self._ends = wp.array(ends, dtype=wp.int32)
        self._rest = wp.array(lengths, dtype=real)
        order = np.argsort(ends.ravel(), kind="stable")
        self._start = wp.array(np.searchsorted(ends.ravel()[order], np.arange(self.nodes + 1)), dtype=wp.int32)
        self._end = wp.array(order, dtype=wp.int32)
        self._force, self._by_difference = (wp.empty(self.springs, dtype=vec3) for _ in range(2))
        self._total = wp.empty(self.nodes, dtype=vec3)
        self.parameters = {"stiffness": wp.full((1, self.springs), 40.0, dtype=real, requires_grad=True)}

    def start(self, seed: int = 0) -> dict[str, np.ndarray]:
        """A net pulled out of shape."""
        rng = np.random.default_rng(seed)
        return {"x": (self.flat + 0.01 * rng.normal(size=self.flat.shape))[None], "v": np.zeros((1, self.nodes, 3))}

    def make_work(self, arena: Arena) -> None:
        """No slot has any of its own."""

    def step(
        self,
        state: Arrays,
        inputs: Arrays,
        work: None,
        next_state: Arrays,
        outputs: Arrays,
        *,
        tape: wp.Tape | None,
    ) -> None:
        """One symplectic step."""
        h, k = 0.01, self.parameters["stiffness"]
        nodes = [self._start, self._end]

        def divided(kernel: wp.Kernel, size: int, inputs: list, outputs: list) -> None:
            launch_divided(kernel, size, inputs, outputs, device=self.device, smallest=self._smallest)

        divided(_spring_kernel, self.springs, [self._ends, self._rest, k, state.x], [self._force])
        divided(_node_kernel, self.nodes, [*nodes, h, state.x, state.v, self._force], [next_state.x, next_state.v])
        if tape is None:
            return

        def adjoint() -> None:
            reached = [next_state.x.grad, next_state.v.grad]
            divided(_node_adjoint_kernel, self.nodes, [h, *reached], [state.x.grad, state.v.grad, self._total])
            given = [self._ends, self._rest, k, state.x, self._total]
            divided(_spring_adjoint_kernel, self.springs, given, [k.grad, self._by_difference])
            divided(_gather_adjoint_kernel, self.nodes, [*nodes, self._by_difference], [state.x.grad])

        tape.record_func(adjoint, arrays=[next_state.x, next_state.v, state.x, state.v, k])
