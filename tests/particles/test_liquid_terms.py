"""Terms about liquids: shares counted by hand, losses against differences, the bound on adjoints."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from pxr import Usd

import warpsim as ws
from liquid_scenes import arm_with_cup
from warpsim.core.errors import TaskError
from warpsim.io.usd import author
from warpsim.objective import Container, Fill, Fixed, OnBody, Spill, at, episode_of
from warpsim.task.problem import TaskProblem
from warpsim.task.read import read_task


@pytest.fixture(scope="module")
def tipped(tmp_path_factory):
    """A file whose arm tips its cup above a container, and a task that says so."""
    path = arm_with_cup(tmp_path_factory.mktemp("terms") / "arm.usda")
    stage = Usd.Stage.Open(str(path))
    world = stage.GetPrimAtPath("/World")
    basin = author.box(world, "Basin", (0.1, 0.08, 0.05), position=(0.3, 0.02, 0.2), collides=False)
    task = author.task(world, duration=0.02, iterations=1, memoryBudget="64MB")
    author.task_part(task, "Knots", "Motion", channel="driveTarget", count=2)
    author.task_part(task, "Fill", "Pour", subject="/World/Coffee", target=basin, tolerance=0.05)
    author.task_part(task, "Spill", "Spilled", subject="/World/Coffee", targets=[basin], weight=0.5)
    author.task_part(task, "Reach", "Center", subject="/World/Coffee/Center", position=(0.3, 0.0, 0.2))
    stage.GetRootLayer().Save()
    return path


class Falling:
    """A trajectory of given particles, in place of one that was simulated."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, name):
        assert name == "coffee.x"
        return self.x


def _episode(sim, x):
    made = sim.rollout(len(x) - 1)
    return dataclasses.replace(episode_of(sim, made), trajectory=Falling(x))


def test_fill_and_spill_count_particles(tipped):
    sim = ws.Simulator(tipped)
    box = Container(Fixed((1.0, 2.0, 3.0)), (0.5, 0.25, 0.125))
    places = torch.tensor([[1.4, 2.2, 3.1], [1.6, 2.0, 3.0], [1.0, 2.3, 3.0], [1.0, 2.0, 2.8], [0.6, 1.8, 2.9]])
    x = places.double().expand(2, 1, 5, 3).clone()
    episode = _episode(sim, x)
    fill, spill = Fill(matter="coffee", container=box), Spill(matter="coffee", containers=(box,))
    assert fill.measure(episode, slice(1, 2)).item() == pytest.approx(3 / 5)
    assert spill.measure(episode, slice(0, 2)).tolist() == [[pytest.approx(3 / 5)]] * 2
    squares = (0.1**2 + 0.05**2 + 0.075**2) / 5
    assert spill.loss(episode).item() == pytest.approx(0.5 * squares)


def test_fill_is_read_where_particles_fall_through_the_opening(tipped):
    sim = ws.Simulator(tipped)
    box = Container(Fixed((0.0, 0.0, 0.0)), (0.5, 0.25, 0.125))
    path = torch.zeros(4, 1, 3, 3, dtype=torch.float64)
    path[:, 0, 0] = torch.tensor([[0.4, 0.0, 0.325], [0.4, 0.0, 0.225], [0.6, 0.0, 0.025], [9.0, 9.0, -9.0]])
    path[:, 0, 1] = torch.tensor([[0.1, 0.0, 0.2], [0.1, 0.0, 0.1], [0.1, 0.0, 0.0], [5.0, 0.0, 0.0]])
    path[:, 0, 2] = torch.tensor([[0.5, 0.25, 0.5]] * 4)
    path.requires_grad_()
    loss = Fill(matter="coffee", container=box).loss(_episode(sim, path))
    # the first crosses at x = 0.5, one half edge; 0.5 of it is free. The third is one half edge off and 3 above
    assert loss.item() == pytest.approx(0.5 * (0.5**2 / 1.5 + 11.0 / (1.0 + 11.0**0.5)) / 3)
    loss.sum().backward()
    assert not path.grad[3, 0, :2].any() and not path.grad[0].any()  # nothing after the splash
    assert path.grad[1, 0, 0, 0].item() == pytest.approx(0.5 * (2 * 0.5 + 0.5**2) / 1.5**2 * 0.5 / 0.5 / 3)


def test_fill_may_be_read_above_the_opening(tipped):
    sim = ws.Simulator(tipped)
    box = Container(Fixed((0.0, 0.0, 0.0)), (0.5, 0.25, 0.125))
    path = torch.zeros(4, 1, 1, 3, dtype=torch.float64)
    path[:, 0, 0] = torch.tensor([[0.4, 0.0, 0.425], [0.5, 0.0, 0.225], [0.5, 0.0, 0.125], [9.0, 0.0, 0.0]])
    fill = Fill(matter="coffee", container=box, above=0.2)  # at z = 0.325, half way through the first step
    assert fill.loss(_episode(sim, path)).item() == pytest.approx(0.5 * 0.4**2 / 1.4)
    assert fill.measure(_episode(sim, path), slice(2, 4)).flatten().tolist() == [0.0, 1.0]
    with pytest.raises(ws.WarpsimError, match=r"above=-1.0"):
        Fill(matter="coffee", container=box, above=-1.0).check(sim)


def test_fill_is_differentiated_with_the_time_at_which_particles_fall_through(tipped):
    """A particle that is higher falls through later, and further on."""
    sim = ws.Simulator(tipped)
    box = Container(Fixed((0.0, 0.0, 0.0)), (0.5, 0.25, 0.125))
    path = torch.zeros(3, 1, 1, 3, dtype=torch.float64)
    path[:, 0, 0] = torch.tensor([[0.2, 0.0, 0.3], [0.4, 0.2, 0.2], [0.7, 0.3, 0.1]])
    fill = Fill(matter="coffee", container=box)
    path.requires_grad_()
    fill.loss(_episode(sim, path)).sum().backward()
    for k in range(path.numel()):
        move = torch.zeros_like(path).flatten()
        move[k] = 1e-6
        with torch.no_grad():
            ends = [fill.loss(_episode(sim, path + sign * move.view_as(path))).item() for sign in (1, -1)]
        assert path.grad.flatten()[k].item() == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-7)
    assert path.grad[1, 0, 0, 2] > 0.1


def test_a_container_moves_with_its_body(tipped):
    sim = ws.Simulator(tipped)
    made = sim.rollout(5, outputs=("body_position", "body_rotation"))
    episode = episode_of(sim, made)
    cup = Container(OnBody("/World/Hand", (0.05, 0.0, 0.02)), (0.0151, 0.0151, 0.0201))
    assert Spill(matter="coffee", containers=(cup,)).measure(episode, slice(0, 6)).max().item() == 0.0
    with pytest.raises(ws.WarpsimError, match="coffee"):
        Spill(matter="cofee", containers=(cup,)).check(sim)


def _problem(path, **changes):
    sim = ws.Simulator(path)
    return TaskProblem(sim, dataclasses.replace(read_task(path, sim.scene, None), **changes))


def test_a_task_with_liquid_terms_is_read_and_differentiated(tipped):
    problem = _problem(tipped)
    x = (problem.start + 0.3).requires_grad_()
    problem.loss(x).backward()
    rng = np.random.default_rng(0)
    move = torch.as_tensor(rng.normal(size=len(x)))
    with torch.no_grad():
        sides = [problem.loss(x + s * 1e-5 * move) for s in (1, -1)]
    measured = ((sides[0] - sides[1]) / 2e-5).item()
    assert (x.grad * move).sum().item() == pytest.approx(measured, rel=1e-5)


def test_bounded_adjoints_are_exact_below_the_bound_and_say_that_they_are_biased(tipped):
    def gradient(**changes):
        problem = _problem(tipped, **changes)
        x = (problem.start + 0.3).requires_grad_()
        problem.loss(x).backward()
        return problem, x.grad

    exact, wide, narrow = (gradient(adjoint_bound=b) for b in (0.0, 1e6, 1e-4))
    assert exact[0].bias is None and "biased gradient" in narrow[0].bias
    assert torch.equal(exact[1], wide[1])
    assert not torch.allclose(exact[1], narrow[1], rtol=1e-2)
    assert torch.isfinite(narrow[1]).all() and narrow[1].norm() < exact[1].norm()


def test_terms_want_liquids_and_cubes(tipped, tmp_path):
    for change, words in (
        (lambda pour: pour.GetRelationship("subject").SetTargets(["/World/Hand"]), "liquid"),
        (lambda pour: pour.GetRelationship("target").SetTargets(["/World/Hand"]), "Cube"),
    ):
        stage = Usd.Stage.Open(str(tipped))
        copy = tmp_path / "bad.usda"
        stage.GetRootLayer().Export(str(copy))
        stage = Usd.Stage.Open(str(copy))
        change(stage.GetPrimAtPath("/World/Task/Pour"))
        stage.GetRootLayer().Save()
        with pytest.raises(TaskError, match=words):
            _problem(copy)
        stage.GetRootLayer().Clear()


def test_when_a_fill_counts(tipped):
    sim = ws.Simulator(tipped)
    box = Container(Fixed((0.0, 0.0, 0.0)), (0.5, 0.25, 0.125))
    path = torch.zeros(11, 1, 1, 3, dtype=torch.float64)
    path[:, 0, 0, 2] = torch.linspace(0.625, -0.375, 11)
    early, late = (Fill(matter="coffee", container=box, when=at(t)) for t in (0.004, 0.02))
    episode = _episode(sim, path)
    assert early.loss(episode).item() == pytest.approx(0.5 * 2.4**2 / 3.4)
    assert late.loss(episode).item() == 0.0
