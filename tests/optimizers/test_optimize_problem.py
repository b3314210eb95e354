"""A problem made of torch functions: what it computes, and what it refuses."""

from __future__ import annotations

import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.optimizers import FunctionProblem, Problem


def test_residuals_make_the_loss():
    problem: Problem = FunctionProblem([1.0, 2.0], residuals=lambda x: torch.stack([x[0] - 3, 2 * x[1], x[0] * x[1]]))
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert problem.loss(x).item() == 0.5 * (4 + 16 + 4)
    (gradient,) = torch.autograd.grad(problem.loss(x), x)
    assert gradient.tolist() == [-2 + 2 * 2, 2 * 4 + 2 * 1]
    rows = torch.tensor([[1.0, 2.0], [0.0, 1.0]], dtype=torch.float64)
    assert problem.losses(rows).tolist() == [12.0, 0.5 * (9 + 4)]
    assert problem.batched_residuals(rows).shape == (2, 3)
    assert list(problem.names) == ["x0", "x1"]


def test_what_is_no_sum_of_squares_says_so():
    problem = FunctionProblem([1.0], loss=lambda x: x.exp().sum())
    with pytest.raises(InputError, match="no sum of squares"):
        problem.residuals(problem.start)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(loss=None), "loss= or residuals="),
        (dict(start=[[1.0]]), "give a vector"),
        (dict(lower=[0.0, 0.0, 0.0]), r"lower has shape \(3,\)"),
        (dict(lower=2.0, upper=1.0, names=("mass", "damping")), "mass: the lower bound 2 is not below the upper, 1"),
        (dict(upper=[5.0, 1.0], names=("mass", "damping")), r"damping starts at 2, which is outside \[-inf, 1\]"),
        (dict(start=[1.0, float("nan")]), "x1 starts at nan"),
        (dict(names=("mass",)), "1 names for 2 values"),
    ],
)
def test_bad_problems_are_refused(change, message):
    given = dict(start=[1.0, 2.0], loss=lambda x: x.sum()) | change
    with pytest.raises(InputError, match=message):
        FunctionProblem(given.pop("start"), **given)
