"""Quadratic programs within a box against scipy's solver, and their optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from warpsim.optimizers.box_qp import box_qp


@pytest.mark.parametrize("n", [1, 3, 8, 20])
def test_random_programs(n):
    for seed in range(20):
        rng = np.random.default_rng([n, seed])
        root = rng.normal(size=(n + 2, n))
        target = rng.normal(size=n + 2)
        low, high = -rng.uniform(size=n), rng.uniform(size=n)
        low[rng.uniform(size=n) < 0.2] = -np.inf
        h, g = root.T @ root, -root.T @ target
        found = box_qp(h, g, low, high, rng.normal(size=n))
        expected = lsq_linear(root, target, (low, high), method="bvls", tol=1e-15).x
        np.testing.assert_allclose(
            found.x, expected, atol=1e-9 * max(1, np.abs(expected).max()) * np.linalg.cond(h) ** 0.5
        )
        slope = h @ found.x + g
        np.testing.assert_allclose(slope[found.free], 0, atol=1e-10 * np.abs(h).sum())
        assert (slope[(found.x == low) & ~found.free] > 0).all()
        assert (slope[(found.x == high) & ~found.free] < 0).all()
        free_block = h[np.ix_(found.free, found.free)]
        np.testing.assert_allclose(found.factor @ found.factor.T, free_block, atol=1e-12 * np.abs(h).max())


def test_a_program_without_a_minimum_is_refused():
    wide = np.full(2, np.inf)
    with pytest.raises(np.linalg.LinAlgError):
        box_qp(np.diag([1.0, -1.0]), np.ones(2), -wide, wide, np.zeros(2))
