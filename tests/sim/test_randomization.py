"""Distributions: seeded draws that differ by world, keep bounds, and carry gradients to their base values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from simulator_support import arm, tumbler
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.sim.randomization import Randomization
from warpsim.sim.simulator import Simulator

CARTPOLE = Path(__file__).resolve().parents[2] / "scenes" / "cartpole.usda"
POLE = "/World/Cart/Pole/Rod.physics:mass"


@pytest.fixture(scope="module")
def cartpole() -> Simulator:
    return Simulator(CARTPOLE, worlds=5, outputs=())


@pytest.fixture(scope="module")
def robot() -> Simulator:
    return Simulator(arm(), worlds=3, outputs=())


def test_a_draw_depends_on_seed_name_and_world_alone(cartpole):
    given = {POLE: Randomization(relative=0.2), "qd": Randomization(absolute=1.0, kind="normal")}
    first, again, other = (cartpole.draw(given, seed=seed) for seed in (3, 3, 4))
    fewer = cartpole.with_worlds(2).draw(given, seed=3)
    for name, value in first.items():
        assert value.shape[0] == 5 and len(value.unique(dim=0)) == 5, name
        assert torch.equal(value, again[name]) and torch.equal(value[:2], fewer[name])
        assert not torch.equal(value, other[name])
    both = cartpole.draw({"qd": Randomization(absolute=1.0), "q": Randomization(absolute=1.0)}, seed=3)
    assert not torch.isclose(both["qd"], both["q"] - cartpole.state.q).any()


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_numbers_have_their_moments_and_reach(kind):
    numbers = Randomization(absolute=1.0, kind=kind).numbers("x", 7, 400, (50,))
    # the normal cut at ±3 has variance 1 − 2·3·φ(3)/(2Φ(3) − 1) = 0.9733
    variance, kurtosis, reach = (1 / 3, 1.8, 1.0) if kind == "uniform" else (0.9733, 2.8369, 3.0)
    assert abs(numbers.mean()) < 4 * np.sqrt(variance / numbers.size)
    assert abs(numbers.var() / variance - 1) < 0.04
    assert abs((numbers**4).mean() / numbers.var() ** 2 - kurtosis) < 0.12
    assert 0.98 * reach < np.abs(numbers).max() <= reach
    neighbors = np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]
    worlds = np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]
    assert max(abs(neighbors), abs(worlds)) < 0.03


def test_values_stay_where_they_were_put(cartpole):
    many = cartpole.with_worlds(2000)
    own = float(cartpole.attribute(POLE).value)
    shares = many.draw({POLE: Randomization(relative=0.2)}, seed=0)[POLE] / own
    assert 0.8 <= shares.min() < 0.803 and 1.197 < shares.max() <= 1.2
    shares = many.draw({POLE: Randomization(base=2 * own, factor=4.0, kind="normal")}, seed=0)[POLE] / (2 * own)
    assert shares.min() > 0 and abs(float(shares.log().mean())) < 0.1 and shares.max() > 8


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_components_that_are_alike_share_their_number(kind):
    """Each world scales as a whole, the worlds differently."""
    sim = Simulator(tumbler(), worlds=50, outputs=())
    own = sim.parameter("body.inertia")[0]
    apart, alike = (
        sim.draw({"body.inertia": Randomization(base=1.0 + own, relative=0.3, kind=kind, alike=shared)}, seed=0)
        for shared in (False, True)
    )
    shares = (alike["body.inertia"] / (1.0 + own)).reshape(50, -1)
    assert shares.shape[1] >= 12
    assert torch.allclose(shares, shares[:, :1].expand_as(shares), rtol=1e-12)
    assert len(shares[:, 0].unique()) == 50
    free = (apart["body.inertia"] / (1.0 + own)).reshape(50, -1)
    assert len(free.flatten().unique()) == free.numel()


def test_a_drawn_pose_moves_along_its_dofs():
    sim = Simulator(tumbler(), worlds=40, outputs=())
    q = sim.draw({"q": Randomization(absolute=0.3)}, seed=1)["q"]
    hub, flail = q[:, 3:7], q[:, 7:11]
    for rotation, base in ((hub, sim.state.q[0, 3:7]), (flail, sim.state.q[0, 7:11])):
        assert torch.allclose(rotation.norm(dim=1), torch.ones(40, dtype=torch.float64), atol=1e-12)
        angle = 2 * torch.acos((rotation @ base).abs().clamp(max=1.0))
        assert 0.1 < angle.max() <= 0.3 * 3**0.5 + 1e-9
    assert (q[:, :3] - sim.state.q[0, :3]).abs().max() <= 0.3


def test_draws_reach_the_physics(cartpole):
    """Each world moves as a simulator of its own with that world's mass and start does."""
    values = cartpole.draw({POLE: Randomization(relative=0.2), "q": Randomization(absolute=0.5)}, seed=2)
    q = values.pop("q")
    together = cartpole.rollout(30, parameters=values, q=q).q
    alone = cartpole.with_worlds(1)
    for world in range(cartpole.worlds):
        one = alone.rollout(30, parameters={POLE: values[POLE][world]}, q=q[world]).q
        assert torch.equal(one[:, 0], together[:, world])
    assert len(together[-1].unique(dim=0)) == cartpole.worlds


@pytest.mark.parametrize(
    "distribution",
    [
        {"relative": 0.2},
        {"factor": 1.5, "kind": "normal"},
        {"absolute": 0.02},
    ],
)
def test_gradients_reach_the_base_value(cartpole, distribution):
    start = {"q": Randomization(absolute=0.5), "qd": Randomization(absolute=0.5)}

    def loss(mass, place):
        parameters = cartpole.draw({POLE: Randomization(base=mass, **distribution)}, seed=5)
        start["q"] = Randomization(base=place, absolute=0.5)
        return cartpole.rollout(20, parameters=parameters, **cartpole.draw(start, seed=5)).q.square().sum()

    mass = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    place = torch.tensor([0.1, 0.4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss, (mass, place), eps=1e-6, atol=1e-9, rtol=1e-6)


def test_gradients_reach_the_base_of_arrays(robot):
    def loss(density, qd):
        parameters = robot.draw({"shape.density": Randomization(base=density, relative=0.3)}, seed=1)
        start = robot.draw({"qd": Randomization(base=qd, relative=0.3, kind="normal")}, seed=1)
        return robot.rollout(5, parameters=parameters, **start).q.square().sum()

    density = robot.parameter("shape.density")[0].requires_grad_()
    qd = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss, (density, qd), eps=1e-4, atol=1e-9, rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of absolute, relative and factor; got none"),
        ({"absolute": 1.0, "factor": 2.0}, "got absolute, factor"),
        ({"relative": 1.0}, "less than 1, or values could change their sign"),
        ({"relative": 0.4, "kind": "normal"}, "less than 0.333333"),
        ({"relative": -0.1}, "at least 0"),
        ({"factor": 0.5}, "at least 1"),
        ({"absolute": float("nan")}, "must be finite"),
        ({"absolute": 1.0, "kind": "cauchy"}, "no kind of distribution 'cauchy'"),
    ],
)
def test_distributions_are_checked(given, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        Randomization(**given)


@pytest.mark.parametrize(
    ("key", "given", "message"),
    [
        (POLE, {"absolute": 0.2}, "Rod.physics:mass could be anything from -0.1 to 0.3"),
        ("body.mass", {"base": np.ones(3), "absolute": 2.0}, "body.mass could be anything from -1 to 3"),
        (POLE, {"relative": [0.1, 0.2]}, r"spread of .*mass has shape \(2,\); give one number"),
        (POLE, {"base": [0.1, 0.2], "relative": 0.1}, r"base of .*mass has shape \(2,\)"),
        ("qd", {"base": [0.1] * 3, "absolute": 0.1}, "qd has shape"),
        ("q", {"relative": 0.1}, "q is moved along its dofs; give absolute="),
        ("activation", {"absolute": 0.1}, "no actuator of this scene has an activation"),
        ("body.rotation", {"absolute": 0.1}, "body.rotation are rotations"),
        ("/World/Cart/Pole.xformOp:orient", {"absolute": 0.1}, "is a rotation"),
        ("body.mas", {"relative": 0.1}, "did you mean 'body.mass'"),
    ],
)
def test_draws_are_checked(cartpole, key, given, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        cartpole.draw({key: Randomization(**given)}, seed=0)
