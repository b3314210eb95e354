"""Quadratic tetrahedra in scenes: contact with a body, gradients, USD there and back, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from pxr import Usd, Vt

import warpsim as ws
from cloth_scenes import directional, new_world
from warpsim.core.errors import SceneError
from warpsim.io.usd import author
from warpsim.io.usd.export.scene import export_scene
from warpsim.io.usd.reader import read_usd

STEPS = 8
NAMES = ("block.young", "block.young_scale", "block.poisson", "block.density_scale", "block.damping", "block.rest")


def stage_of(path: Path) -> Usd.Stage:
    """A soft block of one cell, 27 points, falls on a plate that a drive carries and that holds one corner."""
    stage, world = new_world(rate=100)
    plate = author.body(world, "Plate", position=(0, 0, 0.1), mass=0.3, articulation_root=True)
    author.box(plate, "Plate", (0.1, 0.1, 0.01), density=500)
    author.prismatic(world, "Slide", None, plate, "Z", drive={"stiffness": 300.0, "damping": 3.0})
    soft = {"young": 2e4, "density": 400, "damping": 0.01, "friction": 0.5, "contact_stiffness": 500.0}
    start = {"position": (0, 0, 0.1405), "velocity": (0.1, 0, -0.4)}
    block = author.soft(world, "Block", box=(0.08, 0.08, 0.06), cells=1, order=2, **start, **soft)
    author.attach(block, "Hard", [0], plate)
    author.save(stage, path)
    return stage


@pytest.fixture(scope="module")
def sim(tmp_path_factory: pytest.TempPathFactory) -> ws.Simulator:
    path = tmp_path_factory.mktemp("quadratic") / "block.usda"
    stage_of(path)
    return ws.Simulator(path)


def _loss(sim: ws.Simulator, given: dict[str, torch.Tensor]) -> torch.Tensor:
    made = sim.rollout(STEPS, parameters=given, outputs=("block.contact_force",))
    weights = torch.as_tensor(np.random.default_rng(1).normal(size=made["block.x"].shape[-2:]))
    return (made["block.x"][-1] * weights).sum() + made.q[-1].sum() + 0.01 * made["block.contact_force"][-1].sum()


def test_middles_carry_mass_and_touch(sim: ws.Simulator) -> None:
    made = sim.rollout(STEPS, outputs=("block.contact_force", "block.solver_status", "block.center"))
    assert made["block.x"].shape[2] == 27
    assert int(made["block.solver_status"].abs().max()) == 0
    assert (made["block.contact_force"][-1, 0, 8:, 2] > 0.01).any()
    # a box's center of mass is its middle, whatever share of the mass each point has
    np.testing.assert_allclose(made["block.center"][0, 0, 0], [0.0, 0.0, 0.1405], atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_agree_with_differences(sim: ws.Simulator, name: str) -> None:
    given = {n: sim.parameter(n)[0].clone() for n in NAMES}
    leaf = given[name].clone().requires_grad_()
    (found,) = torch.autograd.grad(_loss(sim, {**given, name: leaf}), leaf)
    scale = given[name].abs().mean()
    direction = scale * torch.as_tensor(np.random.default_rng(2).uniform(-1, 1, size=tuple(leaf.shape)))
    for step in (1e-4, 1e-5, 1e-6):
        expected, error = directional(lambda g: _loss(sim, g), given, name, direction, step)
        if error < 2e-7 * abs(expected):
            break
    else:
        pytest.fail(f"no step without a switch of contact: {error / abs(expected):.1e}")
    assert float((found * direction).sum()) == pytest.approx(expected, rel=1e-6)


def test_written_scene_is_the_same(sim: ws.Simulator, tmp_path: Path) -> None:
    """As if it came from no file: points, middles and material."""
    stage_of(tmp_path / "block.usda")
    scene = read_usd(tmp_path / "block.usda", strict=True)
    again = read_usd(export_scene(scene)[0], strict=True)
    np.testing.assert_array_equal(again.matters[0].data["elements"], scene.matters[0].data["elements"])
    ends = [s.rollout(STEPS)["block.x"][-1] for s in (sim, ws.Simulator(again))]
    torch.testing.assert_close(ends[0], ends[1], atol=2e-5, rtol=0)


def test_too_few_middles_are_named(tmp_path: Path) -> None:
    stage = stage_of(tmp_path / "bad.usda")
    stage.GetPrimAtPath("/World/Block").GetAttribute("warpsim:midEdgeIndices").Set(Vt.IntArray([8, 9]))
    author.save(stage, tmp_path / "bad.usda")
    with pytest.raises(SceneError, match=r"/World/Block.*six for each of"):
        ws.Simulator(tmp_path / "bad.usda")
