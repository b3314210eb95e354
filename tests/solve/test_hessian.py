"""The contact Hessian against differences of the rows' forces written in NumPy, for rows of every kind and size."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp

from rigid_support import random_model, scene_of
from warpsim.core.precision import numpy_real, real
from warpsim.rigid.compile.compile import compile_model
from warpsim.solve.hessian import ENVELOPE, FOREST, HessianKernels, HessianStorage
from warpsim.solve.rows import DRY_FRICTION, ELLIPTIC, EQUALITY, UNILATERAL, RowCapacity, Rows, allocate_rows
from warpsim.solve.sparsity import MIN_TREES, TreeSparsity, hessian_sizes

SIZES = {
    int(EQUALITY): (1, 2, 3, 5, 6),
    int(UNILATERAL): (1, 4, 6, 10),
    int(DRY_FRICTION): (1,),
    int(ELLIPTIC): (3, 4, 6),
}


def _solve_kernel(storage: HessianStorage) -> wp.Kernel:
    factor_hessian, solve_hessian = storage.factor, storage.solve

    @wp.kernel(enable_backward=False, name=f"solve_{storage.name}_kernel")
    def solve_kernel(
        t: TreeSparsity,
        rows: Rows,
        y: wp.array2d(dtype=real),
        matrix: wp.array2d(dtype=real),
        implicit: wp.array2d(dtype=real),
        known: int,
        factor: wp.array2d(dtype=real),
        envelope: wp.array2d(dtype=wp.int32),
        x: wp.array2d(dtype=real),
        failed: wp.array(dtype=wp.int32),
    ):
        w = wp.tid()
        failed[w] = factor_hessian(rows, t, w, y, matrix, implicit, known, factor, envelope)
        solve_hessian(t, w, factor, envelope, x)

    return solve_kernel


_SOLVE_KERNELS = HessianKernels(_solve_kernel(ENVELOPE), _solve_kernel(FOREST))


def _forest_xml(trees: int) -> str:
    """Free bodies, among them a chain of hinges and single slides."""
    geom = '<geom size=".1"/>'
    link = f'<body><joint axis="0 1 0"/>{geom}<body pos=".3 0 0"><joint axis="1 0 0"/>{geom}</body></body>'
    kinds = (f"<body><freejoint/>{geom}</body>", link, f'<body><joint type="slide"/>{geom}</body>')
    bodies = "".join(kinds[(i % 5) % 3] for i in range(trees))
    return f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"


class Problem:
    """Random rows over the dofs of a random forest, a mass matrix with its pattern, and a point y."""

    def __init__(self, seed: int, trees: int = 0) -> None:
        """With `trees`, over a forest of so many, of which each group couples two neighbors, and one all."""
        rng = self.rng = np.random.default_rng(seed)
        source = mujoco.MjModel.from_xml_string(_forest_xml(trees)) if trees else random_model(seed)
        self.model = compile_model(scene_of(source))
        self.trees = trees
        t, n = self.model.sparsity, self.model.nv
        start, column = t.row_start.numpy(), t.row_column.numpy()
        self.entries = 0.1 * rng.normal(size=len(column))
        self.entries[start[:-1]] = 5.0 + rng.random(n)
        self.implicit = rng.random(n)
        self.mass = np.zeros((n, n))
        for d in range(n):
            self.mass[d, column[start[d] : start[d + 1]]] = self.entries[start[d] : start[d + 1]]
        self.mass += np.tril(self.mass, -1).T + np.diag(self.implicit)
        self.groups = [self._group(kind, dim, n) for kind, dims in SIZES.items() for dim in dims for _ in range(2)]

    def _group(self, kind: int, dim: int, n: int) -> dict:
        choice = np.arange(n)
        if self.trees and self.rng.random() < 0.95:
            start, tree = self.model.sparsity.tree_start.numpy(), self.rng.integers(self.trees - 1)
            choice = np.arange(start[tree], start[tree + 2])
        columns = self.rng.choice(choice, size=self.rng.integers(1, min(n, 9) + 1))  # in any order, some dofs twice
        y = self.rng.normal(size=dim)
        scale = 0.5 + self.rng.random(dim)
        if kind == ELLIPTIC:
            y[0] = self.rng.choice([-3.0, 0.1, 4.0])  # sticking, sliding, apart
        return dict(
            kind=kind,
            columns=columns,
            entries=self.rng.normal(size=(len(columns), dim)),
            weight=0.5 + self.rng.random(dim),
            scale=scale,
            y=y,
        )

    def device_rows(self) -> Rows:
        capacity = RowCapacity()
        for g in self.groups:
            capacity = capacity.plus(1, len(g["y"]), len(g["columns"]))
        rows = allocate_rows(1, capacity, self.model.device)
        dims, widths = ([len(g[key]) for g in self.groups] for key in ("y", "columns"))
        firsts = {"first_row": dims, "first_column": widths, "first_entry": np.multiply(dims, widths)}
        for name, sizes in firsts.items():
            getattr(rows, name).assign(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)[None])
        rows.used.assign(np.array([[len(dims), sum(dims), sum(widths), np.dot(dims, widths)]], np.int32))
        rows.kind.assign(np.array([[g["kind"] for g in self.groups]], np.int32))
        rows.column.assign(np.concatenate([g["columns"] for g in self.groups]).astype(np.int32)[None])
        for name, key in (("weight", "weight"), ("scale", "scale"), ("entry", "entries")):
            values = np.concatenate([g[key].ravel() for g in self.groups])
            getattr(rows, name).assign(values.astype(numpy_real)[None])
        return rows

    def y(self) -> np.ndarray:
        return np.concatenate([g["y"] for g in self.groups])

    def product(self, x: np.ndarray) -> np.ndarray:
        """H x by central differences of Jᵀ∇s along x."""
        total = self.mass @ x
        for g in self.groups:
            z = g["entries"].T @ x[g["columns"]]
            step = 1e-6
            change = (_slope(g, g["y"] + step * z) - _slope(g, g["y"] - step * z)) / (2 * step)
            np.add.at(total, g["columns"], g["entries"] @ change)
        return total


def _slope(g: dict, y: np.ndarray) -> np.ndarray:
    """∇s of one group."""
    kind, d, s = g["kind"], g["weight"], g["scale"]
    if kind == EQUALITY:
        return d * y
    if kind == UNILATERAL:
        return d * np.minimum(y, 0.0)
    if kind == DRY_FRICTION:
        return np.clip(d * y, -s, s)
    mu, u = s[0], s * y
    normal, tangent = u[0], np.linalg.norm(u[1:])
    if normal >= mu * tangent:
        return np.zeros_like(y)
    if mu * normal + tangent <= 0.0:
        return d * y
    pull = d[0] / (mu**2 * (1 + mu**2)) * (normal - mu * tangent)
    return pull * s * np.concatenate([[1.0], -mu * u[1:] / tangent])


def _solved(problem: Problem, rows: Rows, y: np.ndarray, right: np.ndarray, factor: wp.array | None = None):
    """x with H x = right; with a factor, that one may be kept."""
    device = problem.model.device

    def on_device(values: np.ndarray) -> wp.array:
        return wp.array(values.astype(numpy_real)[None], dtype=real, device=device)

    known = int(factor is not None)
    if factor is None:
        reals, integers = hessian_sizes(problem.model.sparsity)
        factor = wp.full((1, reals), np.nan, dtype=real, device=device)
        problem.envelope = wp.full((1, integers), -7, dtype=wp.int32, device=device)
    x, failed = on_device(right), wp.zeros(1, dtype=wp.int32, device=device)
    inputs = [
        problem.model.sparsity,
        rows,
        on_device(y),
        on_device(problem.entries),
        on_device(problem.implicit),
        known,
    ]
    wp.launch(
        _SOLVE_KERNELS.of(problem.model.sparsity),
        dim=1,
        inputs=inputs,
        outputs=[factor, problem.envelope, x, failed],
        device=device,
    )
    assert failed.numpy()[0] == 0
    return x.numpy()[0], factor


@pytest.mark.parametrize(("seed", "trees"), [(seed, 0) for seed in range(6)] + [(0, 8), (1, 13), (2, 40), (3, 70)])
def test_the_factor_solves_with_the_hessian(seed, trees):
    """Rows of all kinds and sizes couple dofs of several trees at random; some dofs are listed twice."""
    problem = Problem(seed, trees)
    assert (problem.model.sparsity.trees >= MIN_TREES) == (trees > 0)
    right = problem.rng.normal(size=problem.model.nv)
    x, _ = _solved(problem, problem.device_rows(), problem.y(), right)
    np.testing.assert_allclose(problem.product(x), right, rtol=0.0, atol=2e-7 * np.abs(problem.mass @ x).max())


@pytest.mark.parametrize("trees", [0, 11])
def test_a_known_factor_is_kept_only_where_the_hessian_is_the_same(trees):
    """The same rows act: kept, bit for bit. One switches, or a cone slides: formed again."""
    problem = Problem(3, trees)
    right = problem.rng.normal(size=problem.model.nv)
    sliding = [g for g in problem.groups if g["kind"] == ELLIPTIC]
    for g in sliding:
        g["y"][0] = -5.0 * np.abs(g["y"]).max()  # all stick
    rows = problem.device_rows()
    _, factor = _solved(problem, rows, problem.y(), right)
    first = factor.numpy().copy()
    mark = first.copy()
    mark[0, 0] += 1.0  # would be gone if H were formed again
    factor.assign(mark)
    for g in problem.groups:
        g["y"] = g["y"] * 1.01 if g["kind"] != DRY_FRICTION else g["y"]
    _solved(problem, rows, problem.y(), right, factor)
    held = slice(None, -2 * problem.model.nv if trees else None)  # a forest's factor ends with scratch
    np.testing.assert_array_equal(factor.numpy()[:, held], mark[:, held])
    edge = next(g for g in problem.groups if g["kind"] == UNILATERAL)
    edge["y"] = -edge["y"]
    x, _ = _solved(problem, rows, problem.y(), right, factor)
    np.testing.assert_allclose(problem.product(x), right, rtol=0.0, atol=2e-7 * np.abs(problem.mass @ x).max())
    sliding[0]["y"][0] = 0.0
    for shift in (1.0, 1.3):  # the same mode, another H
        sliding[0]["y"][1:] = shift * np.arange(1.0, len(sliding[0]["y"]))
        x, _ = _solved(problem, rows, problem.y(), right, factor)
        np.testing.assert_allclose(problem.product(x), right, rtol=0.0, atol=2e-7 * np.abs(problem.mass @ x).max())
