"""Gradient estimators: unbiased on a quadratic, and a ball over a wall, where first-order gradients mislead."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpsim.optimize.estimators import KINDS, GradientEstimator
from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.simulator import Simulator

WORLDS, STEPS, TARGET = 32, 160, 2.5


@pytest.mark.parametrize("kind", KINDS)
def test_all_are_right_on_a_quadratic(kind):
    """The smoothed quadratic has the gradient of the quadratic itself."""
    curve = torch.tensor([1.0, 3.0, 0.5], dtype=torch.float64)
    x = torch.tensor([0.3, -0.2, 0.7], dtype=torch.float64)
    estimate = GradientEstimator(lambda c: (curve * c.square()).sum(1), kind=kind, deviation=0.1, samples=4000)(x)
    exact = 2.0 * curve * x
    assert float((estimate.gradient - exact).norm()) < 4.0 * estimate.variance**0.5 + 1e-12
    assert estimate.variance**0.5 < 0.2 * float(exact.norm())


def test_only_the_zeroth_sees_a_step():
    """A loss that jumps: slopes are zero everywhere, the smoothed loss falls; the mix takes the second estimate."""

    def losses(c: torch.Tensor) -> torch.Tensor:
        return (c[:, 0] < 0.0).to(c) + 0.0 * c[:, 0]

    x = torch.zeros(1, dtype=torch.float64)
    found = {k: GradientEstimator(losses, kind=k, deviation=0.5, samples=400)(x) for k in KINDS}
    exact = -1.0 / (0.5 * np.sqrt(2.0 * np.pi))
    assert float(found["first"].gradient) == 0.0
    for kind in ("zeroth", "mixed"):
        assert float(found[kind].gradient) == pytest.approx(exact, rel=0.2)
    assert found["mixed"].share < 0.1


def thrower() -> Simulator:
    """A ball that is thrown, and a wall between it and its target; it sticks to what it hits."""
    scene = Scene(options=Options(timestep=0.005))
    scene.shapes.append(
        Shape("wall", "box", position=np.array([1.2, 0.0, -0.5]), size=np.array([0.3, 1.0, 1.0]), condim=1)
    )
    scene.bodies.append(Body("ball"))
    for name, axis in (("x", [1.0, 0.0, 0.0]), ("z", [0.0, 0.0, 1.0])):
        scene.joints.append(Joint(name, "slide", "ball", axis=np.array(axis)))
    scene.shapes.append(Shape("ball", "sphere", "ball", size=np.array([0.1, 0.0, 0.0]), condim=1))
    return Simulator(scene, worlds=WORLDS)


def misses(sim: Simulator):
    """Squared distance from the target after 0.8 s, by the velocity of the throw."""

    def losses(v: torch.Tensor) -> torch.Tensor:
        rows = v if len(v) == WORLDS else v.expand(WORLDS, -1)
        return (sim.rollout(STEPS, qd=rows, outputs=()).q[-1, :, 0] - TARGET).square()[: len(v)]

    return losses


def throw(kind: str, seed: int = 0) -> list[float]:
    """Loss along normalised descent."""
    losses = misses(thrower())
    estimator = GradientEstimator(losses, kind=kind, deviation=1.0, samples=WORLDS, seed=seed)
    x, curve = torch.tensor([2.5, 2.0], dtype=torch.float64), []
    for k in range(40):
        gradient = estimator(x).gradient
        x = x - 0.3 * 0.95**k * gradient / max(float(gradient.norm()), 1e-3)
        curve.append(float(losses(x[None])[0]))
    return curve


def test_a_ball_over_a_wall():
    """The exact gradient never gets past the wall; the zeroth-order and the mix do, and the mix solves it."""
    losses = misses(thrower())
    x = torch.tensor([[2.5, 2.0]], dtype=torch.float64)
    start = float(losses(x)[0])
    assert start > 2.0  # stopped by the wall
    for _ in range(40):
        x = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(losses(x)[0], x)
        x = x - 0.1 * gradient / max(float(gradient.norm()), 1e-3)
    plain, mixed, zeroth = float(losses(x.detach())[0]), throw("mixed")[-1], throw("zeroth")[-1]
    assert mixed < 0.02, (plain, zeroth, mixed)
    assert plain > 10.0 * mixed, (plain, zeroth, mixed)
    assert zeroth < 0.2, (plain, zeroth, mixed)
