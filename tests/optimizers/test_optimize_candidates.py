"""Candidates of which some cannot be simulated: the rest are as if they were alone, against closed forms.

A slider of mass m pushed by a constant force F from rest has gone x = ½·(F/m)·(t² + h·t) after t, in steps of h
(semi-implicit Euler): with F and t given, the mass that goes a wanted way is known.
"""

from __future__ import annotations

from functools import partial

import pytest
import torch
from pxr import Gf, UsdGeom

from warpsim.core.driving import ask, drive
from warpsim.core.errors import RangeError, SimulationError
from warpsim.io.usd import author
from warpsim.optimizers import FunctionProblem, RolloutProblem, Variable, Variables, minimize, multi_start
from warpsim.optimizers.candidates import losses_one_by_one, losses_side_by_side
from warpsim.optimizers.estimators import GradientEstimator
from warpsim.sim.simulator import Simulator

MASS = "/World/Cart.physics:mass"
FORCE, STEPS, STEP = 3.0, 50, 0.01
TRUE_MASS = 0.4


def way(mass: torch.Tensor | float):
    t = STEPS * STEP
    return 0.5 * FORCE / mass * (t * t + STEP * t)


@pytest.fixture(scope="module")
def problem(tmp_path_factory) -> RolloutProblem:
    """Which mass goes as far as one of 0.4 kg? x is the mass in kg, and nothing keeps it above 0."""
    stage = author.new_stage()
    author.physics_scene(stage, gravity=0.0, attributes={"mjc:option:timestep": STEP})
    cart = author.body(author.world(stage), "Cart", mass=1.0, inertia=(1, 1, 1))
    rail = author.prismatic(cart, "Rail", None, cart, axis="X")
    author.actuator(author.world(stage), "Motor", rail)
    path = tmp_path_factory.mktemp("cart") / "cart.usda"
    author.save(stage, path)
    sim = Simulator(path)
    variables = Variables([Variable(sim.attribute(MASS))])
    return RolloutProblem(
        sim, variables, lambda t: t.q[-1] - way(TRUE_MASS), controls=torch.full((STEPS, 1), FORCE, dtype=torch.float64)
    )


def exact(x: torch.Tensor) -> torch.Tensor:
    """Losses of candidates (k, 1) in closed form, infinite for masses that are not above 0."""
    mass = x[:, 0]
    return torch.where(mass > 0, (way(mass) - way(TRUE_MASS)).square() / 2, torch.inf)


def candidates(*masses: float) -> torch.Tensor:
    return torch.tensor(masses, dtype=torch.float64)[:, None]


def test_one_negative_mass_leaves_the_others_their_losses_and_slopes(problem):
    x = candidates(0.5, -0.2, 2.0, -3.0, 1.0).requires_grad_()
    losses = problem.losses(x)
    torch.testing.assert_close(losses, exact(x.detach()), rtol=1e-9, atol=1e-12)
    (slopes,) = torch.autograd.grad(losses[torch.isfinite(losses)].sum(), x)
    known = x.detach().clone().requires_grad_()
    (expected,) = torch.autograd.grad(exact(known)[[0, 2, 4]].sum(), known)
    torch.testing.assert_close(slopes, expected, rtol=1e-8, atol=1e-12)


def test_candidates_that_all_fail_are_all_infinite(problem):
    x = candidates(-1.0, -2.0).requires_grad_()
    losses = problem.losses(x)
    assert torch.isinf(losses).all() and losses.requires_grad
    with pytest.raises(RangeError, match="must be above 0"):  # alone it is the caller's to mend
        problem.loss(x[0])


def test_cem_finds_the_mass_and_counts_what_it_dropped(problem):
    seen = []

    class Watched:
        start, lower, upper, names = problem.start, problem.lower, problem.upper, problem.names
        loss = staticmethod(problem.loss)

        def losses(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.clone())
            return problem.losses(x)

    options = dict(deviation=1.0, samples=24, elites=6, inertia=0.3, seed=3)
    found = minimize(Watched(), "cem", iterations=12, **options)
    assert found.x.item() == pytest.approx(TRUE_MASS, rel=0.02)
    dropped = sum(int(torch.isinf(exact(x)).sum()) for x in seen)
    assert found.dropped == dropped > 0
    assert f"; {dropped} of {1 + 12 * 24} candidates could not be simulated" in found.message
    half = minimize(problem, "cem", iterations=6, **options)
    resumed = minimize(problem, "cem", iterations=12, resume=half.state, **options)
    assert (resumed.dropped, resumed.loss) == (found.dropped, found.loss)


def test_starts_that_fail_are_counted(problem):
    result = multi_start(problem, seed=1, candidates=8, spread=2.0, explore=5, keep=1)
    outside = int(torch.isinf(exact(result.report.starts)).sum())
    assert 0 < outside < 8
    assert result.report.dropped == outside
    assert result.message.endswith(f"; {outside} of 8 starts could not be simulated")
    assert result.x.item() == pytest.approx(TRUE_MASS, rel=1e-6)


@pytest.fixture(scope="module")
def boxes(tmp_path_factory) -> Simulator:
    """A box that falls, in three worlds; its edges are a scale of its own times one of the frame above."""
    stage = author.new_stage()
    author.physics_scene(stage, gravity=10.0, attributes={"mjc:option:timestep": STEP})
    above = author.frame(author.world(stage), "Frame")
    UsdGeom.Xformable(above).AddScaleOp().Set(Gf.Vec3f(1, 1, 1))
    author.box(author.body(above, "Body"), "Box", (0.1, 0.2, 0.3), density=1000.0)
    path = tmp_path_factory.mktemp("boxes") / "box.usda"
    author.save(stage, path)
    return Simulator(path, worlds=3)


def test_what_only_the_reader_refuses(boxes):
    """A frame of no width; the others fall ½·g·(t² + h·t), whatever their size."""
    paths = ["/World/Frame/Body/Box.xformOp:scale", "/World/Frame.xformOp:scale"]
    x = torch.tensor([[0.1, 0.2, 0.3], [0.0, 1.0, 1.0], [0.2, 0.2, 0.2]], dtype=torch.float64)

    def losses(x: torch.Tensor) -> torch.Tensor:
        sim = boxes if len(x) == 3 else boxes.with_worlds(len(x))
        return sim.rollout(STEPS, parameters=dict.fromkeys(paths, x)).q[-1, :, 2]

    with pytest.raises(SimulationError):
        losses(x)
    t = STEPS * STEP
    fallen = -5.0 * (t * t + STEP * t)
    found = drive(losses_side_by_side(partial(ask, losses), x))
    assert found.tolist() == pytest.approx([fallen, torch.inf, fallen], rel=1e-9)


def test_worlds_that_fail_on_their_way_are_run_alone():
    calls = []

    def losses(x: torch.Tensor) -> torch.Tensor:
        calls.append(len(x))
        if (x > 5).any():
            raise SimulationError("not finite")
        return x.square().sum(-1)

    x = torch.tensor([[1.0], [9.0], [2.0]], dtype=torch.float64, requires_grad=True)
    made = drive(losses_side_by_side(partial(ask, losses), x))
    assert made.tolist() == [1.0, torch.inf, 4.0] and calls == [3, 1, 1, 1]
    (slope,) = torch.autograd.grad(made[[0, 2]].sum(), x)
    assert slope[:, 0].tolist() == [2.0, 0.0, 4.0]


def test_functions_that_raise():
    def loss(x: torch.Tensor) -> torch.Tensor:
        if x[0] < 0:
            raise SimulationError("cannot be simulated")
        return (x[0] + 1.0).square()

    x = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    assert (
        losses_one_by_one(loss, x).tolist() == FunctionProblem([1.0], loss=loss).losses(x).tolist() == [4.0, torch.inf]
    )
    found = minimize(FunctionProblem([1.0], loss=loss), "cem", inertia=0.5, iterations=40)
    assert 0 <= found.x.item() < 0.05 and found.dropped > 0


def test_estimates_leave_out_pairs_that_cannot_be_simulated():
    """Of the loss 3·x, where samples beyond 1 fail, so that ε is cut off at ±1."""

    def losses(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x[:, 0] > 1.0, torch.inf, 3.0 * x[:, 0])

    origin = torch.zeros(1, dtype=torch.float64)
    first, zeroth = (
        GradientEstimator(losses, kind=kind, deviation=1.0, samples=2000, seed=0)(origin)
        for kind in ("first", "zeroth")
    )
    assert 250 < torch.isinf(first.losses).sum() < 400
    assert first.gradient.item() == pytest.approx(3.0, rel=1e-12)
    assert zeroth.gradient.item() == pytest.approx(3.0 * 0.2911, abs=0.1)  # 3·E[ε² | |ε| < 1]
    with pytest.raises(SimulationError, match="two are needed"):
        GradientEstimator(losses, deviation=1.0, samples=8)(origin + 9.0)
