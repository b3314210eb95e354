"""Scenes with deformables written as USD again: the same motion, springs, bodies that hold, all three forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpsim as ws
from cloth_scenes import everything, new_world
from warpsim.io.usd import author
from warpsim.io.usd.export.scene import export_scene
from warpsim.io.usd.reader import read_usd


def soft_and_cable(path: Path) -> Path:
    """A block that falls on a floor, and a cable that hangs on a spring and on a point of the world."""
    stage, world = new_world()
    author.ground(world, "Floor")
    author.soft(world, "Block", box=(0.2, 0.2, 0.2), cells=1, position=(0, 0, 0.11), young=2e4, velocity=(0.3, 0, -1))
    line = np.stack([np.linspace(0, 0.5, 6), np.zeros(6), np.full(6, 0.8)], axis=1)
    cable = author.cable(world, "Cable", line, young=1e6, thickness=0.02)
    author.attach(cable, "End", [0])
    author.attach(cable, "Spring", [5], world, places=np.array([[0.55, 0.1, 0.9]]), stiffness=40.0, damping=0.5)
    author.save(stage, path)
    return path


def test_extents_hold_the_points():
    stage, world = new_world()
    line = np.array([[0.0, -1.0, 2.0], [3.0, 0.5, -4.0], [1.0, 5.0, 0.0]])
    prim = author.cable(world, "Cable", line)
    assert np.array(prim.GetAttribute("extent").Get()).tolist() == [[0.0, -1.0, -4.0], [3.0, 5.0, 2.0]]


@pytest.mark.parametrize("make", [everything, soft_and_cable])
def test_written_scenes_move_as_before(tmp_path, make):
    scene = read_usd(make(tmp_path / "scene.usda"), strict=True)
    stage, notes = export_scene(scene)
    assert notes == []
    again = read_usd(stage, strict=True)
    ends = [ws.Simulator(s).rollout(steps=20) for s in (scene, again)]
    for matter in scene.matters:
        for field in ("x", "v"):
            first, second = (end[f"{matter.name}.{field}"] for end in ends)
            assert np.ptp(first.numpy()) > 0.0
            np.testing.assert_allclose(second, first, atol=2e-5)


def test_material_by_element_is_not_written_silently(tmp_path):
    scene = read_usd(everything(tmp_path / "scene.usda"), strict=True)
    scene.matters[0].parameters["young_scale"][0] = 2.0
    _, notes = export_scene(scene)
    assert [note.path for note in notes] == ["matter 'cloth'"]


def test_ledger_names_the_bodies_of_one_solve(tmp_path):
    """Where a cloth meets bodies that move, and nowhere else."""
    notes = [str(entry) for entry in read_usd(everything(tmp_path / "scene.usda")).ledger]
    told = [note for note in notes if "becomes one solve" in note]
    assert len(told) == 1
    assert "'euler'" in told[0] and "/World/Arm" in told[0] and "/World/Ball" in told[0]
    stage, world = new_world()
    author.ground(world, "Floor")
    author.cloth(world, "Cloth", (0.2, 0.2), (2, 2), position=(0, 0, 1), young=1e4, thickness=1e-3)
    author.save(stage, tmp_path / "alone.usda")
    assert not any("one solve" in str(entry) for entry in read_usd(tmp_path / "alone.usda").ledger)
