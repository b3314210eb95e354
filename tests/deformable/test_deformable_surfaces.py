"""Faces that touch by points of their own, and contact with meshes, hulls and decomposed meshes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import warpsim as ws
from cloth_scenes import directional, new_world, random_direction
from deformable_support import block
from warpsim.deformable.samples import FACE_STIFFNESS, touching_samples
from warpsim.io.usd import author

STEPS = 240
APPROXIMATIONS = ("sdf", "convexHull", "convexDecomposition")


def box_mesh(half: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """A closed box, counterclockwise from outside."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [face for a, b, c, d in quads for face in ((a, b, c), (a, c, d))]
    return signs * half, np.array(faces)


def test_samples_of_a_face_carry_its_area_and_moment():
    """Shares sum to one, and a linear pressure on a face has the moment of its points: degree two."""
    points, tetrahedra = block((2, 1, 1), (2.0, 1.0, 1.0))
    faces = tetrahedra[:, :3]
    free = np.arange(len(points)) != faces[0, 0]
    corners, shares, weights = touching_samples(len(points), faces, free)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-15)
    inner = len(points) + 3 * np.count_nonzero(free[faces].all(axis=1))
    assert len(corners) == inner
    assert free[corners[len(points) :]].all()
    assert weights[len(points) : len(points) + 3].sum() == pytest.approx(FACE_STIFFNESS)
    own = shares[len(points) : len(points) + 3]
    # ∫ λᵢλⱼ over a triangle of unit area is (1 + δᵢⱼ)/12
    np.testing.assert_allclose(own.T @ own / 3.0, (1.0 + np.eye(3)) / 12.0, atol=1e-15)


def block_with_a_box(path: Path, at: tuple[float, float], half: float) -> ws.Simulator:
    """A soft block of cells of 5 cm, and a box above its top."""
    stage, world = new_world(rate=200)
    author.ground(world)
    soft = {"young": 3e4, "density": 300, "damping": 0.02, "mass_damping": 4.0}
    author.soft(world, "Block", box=(0.2, 0.2, 0.1), cells=(4, 4, 2), position=(0, 0, 0.05), **soft)
    body = author.body(world, "Body", position=(*at, 0.131))
    author.box(body, "Box", (half, half, 0.03), density=1000)
    author.save(stage, path)
    return ws.Simulator(path)


def test_box_that_covers_no_vertex_is_held(tmp_path: Path) -> None:
    """All of its underside, 4 cm wide, lies within one cell of the block."""
    sim = block_with_a_box(tmp_path / "between.usda", (0.025, 0.025), 0.02)
    made = sim.rollout(STEPS, outputs=("block.contact_force", "block.solver_status"))
    vertical = made["block.contact_force"][-1, 0, :, 2]
    assert int(made["block.solver_status"].abs().max()) == 0
    assert float(vertical[vertical < 0].sum()) == pytest.approx(-9.81 * 1000 * 0.04 * 0.04 * 0.06, rel=1e-3)
    assert 0.127 < float(made.q[-1, 0, 2]) < 0.13


def block_on_a_table(path: Path, approximation: str | None) -> ws.Simulator:
    """A soft block on a slab: a box, or the same as a mesh."""
    stage, world = new_world(rate=200)
    half = (0.3, 0.25, 0.05)
    if approximation is None:
        author.box(world, "Table", half)
    else:
        author.mesh(world, "Table", *box_mesh(half), approximation=approximation)
    soft = {"young": 3e4, "density": 300, "damping": 0.02, "mass_damping": 8.0, "velocity": (0.3, 0.1, -0.2)}
    author.soft(world, "Block", box=(0.1, 0.1, 0.1), cells=2, position=(0.02, 0.01, 0.1), friction=0.4, **soft)
    author.save(stage, path)
    return ws.Simulator(path)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_block_lies_on_a_mesh_as_on_a_box(approximation: str, tmp_path: Path) -> None:
    found = []
    for kind in (None, approximation):
        sim = block_on_a_table(tmp_path / f"{kind}.usda", kind)
        made = sim.rollout(STEPS, outputs=("block.contact_force",))
        assert float(made["block.contact_force"][-1, 0, :, 2].sum()) == pytest.approx(9.81 * 0.3, rel=1e-4)
        found.append(made["block.x"][-1, 0].numpy())
    np.testing.assert_allclose(found[1], found[0], atol=1e-9 if approximation != "sdf" else 2e-4)


@pytest.mark.parametrize("approximation", APPROXIMATIONS[:2])
def test_gradients_through_meshes_agree_with_differences(approximation: str, tmp_path: Path) -> None:
    """Sliding on faces, by where the block is, how it moves, and by friction, stiffness and the mesh's scale."""
    sim = block_on_a_table(tmp_path / "table.usda", approximation)
    start = sim.rollout(6)
    given = {name: start[f"block.{name}"][-1, 0].clone() for name in ("x", "v")}
    names = ("block.friction", "block.contact_stiffness", "shape.size")
    given |= {name: sim.parameter(name)[0].clone() for name in names}
    seed = torch.as_tensor(np.random.default_rng(1).normal(size=given["x"].shape))

    def loss(values: dict[str, torch.Tensor]) -> torch.Tensor:
        made = sim.rollout(
            4,
            start={"block.x": values["x"], "block.v": values["v"]},
            parameters={name: values[name] for name in names},
        )
        return (made["block.x"][-1, 0] * seed).sum()

    leaves = {name: value.clone().requires_grad_() for name, value in given.items()}
    loss(leaves).backward()
    for name in given:
        direction = random_direction(given[name], np.random.default_rng(3))
        direction *= {"x": 1e-2, "v": 1e-2}.get(name, 1.0)
        if name == "shape.size":
            direction *= given[name] > 0
        expected, error = directional(loss, given, name, direction, 1e-6 if name == "shape.size" else 1e-4)
        assert error < 1e-5 * abs(expected), name
        assert float((leaves[name].grad * direction).sum()) == pytest.approx(expected, rel=1e-6), name
