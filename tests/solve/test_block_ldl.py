"""The block-sparse factor: solutions against NumPy, inertia against eigenvalues, the same bits however it is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from tools.bench.block_ldl import assembled, cloth, random_blocks, soft_block
from warpsim.core.errors import InputError
from warpsim.core.precision import PRECISION, mat33, vec3
from warpsim.solve.block_ldl.block_ldl import LANES, BlockLdl
from warpsim.solve.block_ldl.dissection import dissection_order
from warpsim.solve.block_ldl.fronts import find_fronts
from warpsim.solve.block_ldl.pattern import BlockPattern

PROJECT = Path(__file__).resolve().parents[2]


def _random_graph(count: int, edges: int, seed: int) -> BlockPattern:
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, count, size=(edges, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    return BlockPattern.of(count, pairs[np.sort(first)])  # pairs in either order


PATTERNS = {
    "one block": BlockPattern.of(1, []),
    "uncoupled": BlockPattern.of(11, []),
    "chain": BlockPattern.of(30, [(i + 1, i) for i in range(29)]),
    "dense": BlockPattern.of(13, [(i, j) for i in range(13) for j in range(i)]),
    "star": BlockPattern.of(60, [(0, i) for i in range(1, 60)]),
    "two pieces": BlockPattern.of(60, [(i, j) for i in range(60) for j in range(i) if i - j in (2, 6)]),
    "random, sparse": _random_graph(150, 200, 0),
    "random, denser": _random_graph(90, 500, 1),
    "cloth": cloth(9).pattern,
    "soft block": soft_block(5).pattern,
}


def test_there_is_room_for_the_vector_of_all_blocks_and_what_is_summed_beside_it():
    """A long chain has small fronts: there the vector of a solve takes more than its factor does."""
    for count, longer in ((30, False), (1200, True)):
        ldl = BlockLdl(BlockPattern.of(count, [(i + 1, i) for i in range(count - 1)]))
        lanes = -(-3 * count // LANES) * LANES
        assert (lanes + ldl.sizes.vector > ldl.sizes.work) is longer and lanes >= 3 * count
        assert ldl.work.shape == (1, max(ldl.sizes.work, lanes + ldl.sizes.vector))


def _poisoned(ldl: BlockLdl) -> BlockLdl:
    """With NaN wherever a factor and its solves must write first."""
    for array in (ldl.panels, ldl.work):
        array.fill_(float("nan"))
    ldl.nonpositive.fill_(-1)
    return ldl


def _blocks(*values: np.ndarray) -> list[wp.array]:
    return [wp.array(value, dtype=mat33, device="cpu") for value in values]


def _vector(values: np.ndarray) -> wp.array:
    return wp.array(values, dtype=vec3, device="cpu")


@pytest.mark.parametrize("name", PATTERNS)
def test_solutions_are_those_of_a_dense_solver(name, rng):
    pattern = PATTERNS[name]
    diagonal, coupling = random_blocks(pattern, seed=len(name))
    ldl = _poisoned(BlockLdl(pattern, device="cpu"))
    ldl.factor(*_blocks(diagonal[None], coupling[None].reshape(1, -1, 3, 3)))
    assert ldl.nonpositive.numpy().tolist() == [0]
    right = rng.normal(size=3 * pattern.count)
    x = _vector(right.reshape(1, -1, 3))
    ldl.solve(x)
    truth = np.linalg.solve(assembled(pattern, diagonal, coupling).toarray(), right)
    assert np.abs(x.numpy().reshape(-1) - truth).max() < 1e-12 * np.abs(truth).max()


@pytest.mark.long
@pytest.mark.parametrize("lattice", [cloth(20), cloth(40), soft_block(8)], ids=lambda x: x.name)
def test_large_patterns(lattice, rng):
    diagonal, coupling = random_blocks(lattice.pattern)
    matrix = assembled(lattice.pattern, diagonal, coupling)
    for places in (lattice.places, None):
        ldl = _poisoned(BlockLdl(lattice.pattern, places=places, device="cpu"))
        ldl.factor(*_blocks(diagonal[None], coupling[None]))
        truth = rng.normal(size=matrix.shape[0])
        x = _vector((matrix @ truth).reshape(1, -1, 3))
        ldl.solve(x)
        assert np.abs(x.numpy().reshape(-1) - truth).max() < 1e-12 * np.abs(truth).max()


def test_pivots_that_are_not_positive_are_as_many_as_negative_eigenvalues(rng):
    """Sylvester's law of inertia; the factor of an indefinite matrix solves with it all the same."""
    pattern = cloth(6).pattern
    for mass in (0.1, -2.0, -6.0):
        diagonal, coupling = random_blocks(pattern, mass=mass)
        matrix = assembled(pattern, diagonal, coupling).toarray()
        negative = int((np.linalg.eigvalsh(matrix) < 0.0).sum())
        assert (mass > 0.0) == (negative == 0)
        ldl = _poisoned(BlockLdl(pattern, device="cpu"))
        ldl.factor(*_blocks(diagonal[None], coupling[None]))
        assert ldl.nonpositive.numpy().tolist() == [negative]
        right = rng.normal(size=len(matrix))
        x = _vector(right.reshape(1, -1, 3))
        ldl.solve(x)
        truth = np.linalg.solve(matrix, right)
        assert np.abs(x.numpy().reshape(-1) - truth).max() < 1e-9 * np.abs(truth).max()


def test_a_shift_raises_the_diagonal_alone_and_makes_the_matrix_positive():
    pattern = cloth(4).pattern
    diagonal, coupling = random_blocks(pattern, mass=-1.2)
    matrix = assembled(pattern, diagonal, coupling).toarray()
    size = len(matrix)
    ldl = _poisoned(BlockLdl(pattern, worlds=size, device="cpu"))
    ldl.factor(*_blocks(*(np.tile(b, (size, 1, 1, 1)) for b in (diagonal, coupling))), shift=0.1)
    assert (ldl.nonpositive.numpy() > 0).all()
    x = _vector(np.eye(size).reshape(size, -1, 3))  # a column of the inverse in each world
    ldl.solve(x)
    shifted = np.linalg.inv(x.numpy().reshape(size, size))
    change = shifted - matrix
    assert np.abs(change - np.diag(np.diag(change))).max() < 1e-8 * np.abs(matrix).max()
    assert np.diag(change).min() > -1e-8 * np.abs(matrix).max()
    assert (np.diag(change) > 1e-6).sum() == ldl.nonpositive.numpy()[0]
    assert np.linalg.eigvalsh(shifted).min() > 0.0
    positive, couplings = random_blocks(pattern)
    ldl.factor(*_blocks(*(np.tile(b, (size, 1, 1, 1)) for b in (positive, couplings))))
    unshifted = ldl.panels.numpy()
    ldl.factor(*_blocks(*(np.tile(b, (size, 1, 1, 1)) for b in (positive, couplings))), shift=0.1)
    assert (ldl.panels.numpy() == unshifted).all()  # a matrix that is positive definite stays as it is


def test_a_singular_matrix_is_reported():
    pattern = PATTERNS["chain"]
    diagonal, coupling = random_blocks(pattern)
    diagonal[7], coupling[[6, 7]] = 0.0, 0.0
    ldl = BlockLdl(pattern, device="cpu")
    ldl.factor(*_blocks(diagonal[None], coupling[None]))
    assert ldl.nonpositive.numpy()[0] >= 3
    diagonal[7] = np.nan
    ldl.factor(*_blocks(diagonal[None], coupling[None]))
    assert ldl.nonpositive.numpy()[0] >= 3


def test_worlds_repeats_and_captured_replay_give_the_same_bits(rng):
    pattern, worlds = soft_block(4).pattern, 3
    made = [random_blocks(pattern, seed) for seed in (1, 2, 1)]
    diagonal, coupling = _blocks(*(np.array(values) for values in zip(*made, strict=True)))
    right = np.repeat(rng.normal(size=(1, pattern.count, 3)), worlds, axis=0)
    ldl = _poisoned(BlockLdl(pattern, worlds=worlds, device="cpu"))
    x = _vector(right)
    ldl.factor(diagonal, coupling)
    ldl.solve(x)
    first, panels = x.numpy().copy(), ldl.panels.numpy().copy()
    assert (first[0] == first[2]).all() and (first[0] != first[1]).any()
    alone = BlockLdl(pattern, device="cpu")
    single = _vector(right[:1])
    alone.factor(*_blocks(*(values[None] for values in made[0])))
    alone.solve(single)
    assert (single.numpy()[0] == first[0]).all()
    _poisoned(ldl)
    with wp.ScopedCapture("cpu") as capture:
        ldl.factor(diagonal, coupling)
        ldl.solve(x)
    for _ in range(2):
        x.assign(right)
        wp.capture_launch(capture.graph)
        assert (x.numpy() == first).all()
    for front in ldl.plan.front.numpy()[:-1].tolist():
        lead = (front[2] + 7) // 8 * 8
        part = slice(front[3], front[3] + lead * front[1])
        assert (ldl.panels.numpy()[:, part] == panels[:, part]).all()


@pytest.mark.parametrize("name", PATTERNS)
def test_fronts_hold_every_block_once_and_every_row_they_reach(name):
    pattern = PATTERNS[name]
    order = dissection_order(pattern, leaf=8)
    assert sorted(order) == list(range(pattern.count))
    fronts = find_fronts(pattern, order)
    pivots = [block for front in fronts for block in front.pivots]
    assert sorted(pivots) == list(range(pattern.count))
    place = {block: i for i, block in enumerate(pivots)}
    home = {block: i for i, front in enumerate(fronts) for block in front.pivots}
    for i, j in pattern.pairs.tolist():
        early, late = sorted((i, j), key=place.__getitem__)
        assert late in fronts[home[early]].rows or late in fronts[home[early]].pivots
    for i, front in enumerate(fronts):
        assert all(child < i and fronts[child].rows <= front.rows | set(front.pivots) for child in front.children)


def test_dissection_saves_work():
    """Against the order in which the blocks are given, whose fill is that of a band."""
    lattice = cloth(14)

    def work(order: list[int]) -> int:
        sizes = ((len(f.pivots), len(f.rows)) for f in find_fronts(lattice.pattern, order))
        return sum(k**3 // 3 + k * k * m + k * m * m for k, m in sizes)

    banded = work(list(range(lattice.pattern.count)))
    for places in (lattice.places, None):
        assert work(dissection_order(lattice.pattern, places)) < 0.6 * banded


def test_patterns_that_are_wrong():
    with pytest.raises(InputError, match="numbered 0 to 2"):
        BlockPattern.of(3, [(0, 3)])
    with pytest.raises(InputError, match="diagonal block"):
        BlockPattern.of(3, [(1, 1)])
    with pytest.raises(InputError, match=r"\[0, 1\] is given twice"):
        BlockPattern.of(3, [(0, 1), (1, 2), (1, 0)])
    with pytest.raises(InputError, match="at least one"):
        BlockLdl(BlockPattern.of(0, []))
    with pytest.raises(InputError, match=r"need \(2, 3\)"):
        BlockLdl(BlockPattern.of(2, [(0, 1)]), places=np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"needs \(1, 2\) of"):
        BlockLdl(BlockPattern.of(2, [(0, 1)]), device="cpu").solve(_vector(np.zeros((1, 3, 3))))


_SINGLE = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.solve.test_block_ldl import single_error
print(single_error())
"""


def single_error() -> float:
    """Relative error of a solution in the precision of this process."""
    pattern = soft_block(4).pattern
    diagonal, coupling = random_blocks(pattern, mass=1.0)
    matrix = assembled(pattern, diagonal, coupling).toarray()
    truth = np.random.default_rng(0).normal(size=len(matrix))
    ldl = _poisoned(BlockLdl(pattern, device="cpu"))
    ldl.factor(*_blocks(diagonal[None], coupling[None]))
    assert ldl.nonpositive.numpy()[0] == 0
    x = _vector((matrix @ truth).reshape(1, -1, 3))
    ldl.solve(x)
    return float(np.abs(x.numpy().reshape(-1) - truth).max() / np.abs(truth).max())


@pytest.mark.long
@pytest.mark.skipif(PRECISION != "float64", reason="compares with the other precision")
def test_single_precision():
    path = os.pathsep.join([str(PROJECT), str(PROJECT / "tests" / "support"), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-c", _SINGLE, str(PROJECT)],
        env={**os.environ, "PYTHONPATH": path, "WARPSIM_PRECISION": "float32"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert 1e-9 < float(ran.stdout.split()[-1]) < 1e-4
