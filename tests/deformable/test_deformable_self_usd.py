"""Self-contact of deformables on a stage: flags, the law's parameters, writing, and the solve with a body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from pxr import Sdf, Usd, Vt

import warpsim as ws
from cloth_scenes import directional, new_world, parameters, random_direction
from deformable_support import grid_sheet
from warpsim.io.usd import author
from warpsim.io.usd.export.scene import export_scene
from warpsim.io.usd.reader import read_usd

STEPS = 6
STEP = {"x": 1e-6, "v": 1e-4, "cloth.self_distance": 1e-6, "cloth.self_friction": 1e-4, "body.com": 1e-5}
"""Of differences, within which no pair comes or goes; by the law's stiffness too little changes then."""


def folded(path: Path, **options) -> Path:
    """A cloth, folded loosely, that falls on a box which can move."""
    stage, world = new_world()
    author.ground(world, "Floor")
    box = author.body(world, "Box", position=(-0.06, 0.1, 0.05))
    author.box(box, "Shape", (0.1, 0.1, 0.1), density=200)
    rest, triangles = grid_sheet(5, 5, 0.3, 0.2)
    along, radius = rest[:, 0] - 0.137, 0.012
    bent, flat = np.abs(along) < 0.5 * np.pi * radius, np.abs(along) - 0.5 * np.pi * radius
    x = np.where(bent, radius * np.cos(along / radius), -flat)
    z = np.where(bent, radius * np.sin(along / radius), np.sign(along) * radius)
    points = np.stack([x, rest[:, 1] + 0.1 * x, z + 0.118], axis=1)
    given = {"young": 5e4, "thickness": 4e-3, "density": 150.0, "damping": 0.01, "self_collision": True, **options}
    velocities = np.where(along[:, None] > 0.0, [0.1, 0.2, -1.0], [0.05, 0.04, -0.1])
    cloth = author.cloth(
        world, "Cloth", (0, 0), (0, 0), points=points, triangles=triangles, velocities=velocities, **given
    )
    kind = Sdf.ValueTypeNames.Point3fArray
    shape = Vt.Vec3fArray.FromNumpy(rest.astype(np.float32))
    cloth.CreateAttribute("physics:restShapePoints", kind, custom=False).Set(shape)
    author.save(stage, path)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folded(tmp_path_factory.mktemp("fold") / "scene.usda")


@pytest.fixture(scope="module")
def sim(path: Path) -> ws.Simulator:
    return ws.Simulator(path)


def test_layers_stay_apart_on_a_box_that_moves(sim):
    """All steps converge, and none is tangled."""
    made = sim.rollout(200, outputs=("cloth.solver_status", "cloth.tangle"))
    assert not made.numpy("cloth.solver_status")[1:].any()
    assert (made.numpy("cloth.tangle")[1:] == -1).all()


def test_without_the_flag_it_does_not_touch_itself(tmp_path):
    scene = read_usd(folded(tmp_path / "scene.usda", self_collision=False))
    assert not scene.matters[0].data["self_collision"]
    assert "self_stiffness" not in scene.matters[0].parameters


def test_law_follows_from_contacts_and_thickness(sim):
    values = {name: float(sim.parameter(f"cloth.self_{name}")[0]) for name in ("distance", "friction", "damping")}
    assert values == {"distance": pytest.approx(4e-3), "friction": 0.5, "damping": 0.0}
    assert torch.equal(sim.parameter("cloth.self_stiffness"), sim.parameter("cloth.contact_stiffness"))


@pytest.mark.parametrize("name", ["newton:selfCollisionEnabled", "physxDeformableBody:selfCollision"])
def test_either_name_is_read_and_written_again(path, tmp_path, name):
    stage = Usd.Stage.Open(str(path))
    prim = stage.GetPrimAtPath("/World/Cloth")
    prim.RemoveProperty("newton:selfCollisionEnabled")
    prim.CreateAttribute(name, Sdf.ValueTypeNames.Bool, custom=False).Set(True)
    scene = read_usd(stage, strict=True)
    again, notes = export_scene(scene)
    assert notes == []
    for matter in (scene.matters[0], read_usd(again, strict=True).matters[0]):
        assert matter.data["self_collision"]
        assert float(matter.parameters["self_distance"]) == pytest.approx(4e-3)


def test_what_is_no_collider_does_not_touch_itself(tmp_path):
    scene = read_usd(folded(tmp_path / "scene.usda", collides=False))
    assert not scene.matters[0].data["self_collision"]
    assert any("selfCollisionEnabled" in str(entry) for entry in scene.ledger)


@pytest.mark.parametrize("name", STEP)
def test_gradient_across_the_joint_solve(sim, name):
    """Both at once: pairs of the cloth with itself, and the box under it."""
    start = sim.scene.matters[0].initial
    given = {"x": torch.as_tensor(start["x"]), "v": torch.as_tensor(start["v"])}
    if name not in given:
        given |= parameters(sim, (name,))
    weights = torch.as_tensor(np.random.default_rng(2).normal(size=start["x"].shape))

    def loss(values: dict[str, torch.Tensor]) -> torch.Tensor:
        own = {n: v for n, v in values.items() if n not in ("x", "v")}
        made = sim.rollout(STEPS, start={"cloth.x": values["x"], "cloth.v": values["v"]}, parameters=own)
        return (made["cloth.x"][-1] * weights).sum() + 0.3 * made["body_position"][-1].sum()

    direction = random_direction(given[name], np.random.default_rng(3))
    truth, error = directional(loss, given, name, direction, STEP[name])
    leaf = given[name].clone().requires_grad_()
    loss({**given, name: leaf}).backward()
    assert leaf.grad is not None
    found, size = float((leaf.grad * direction).sum()), float(leaf.grad.norm() * direction.norm())
    assert error <= 1e-6 * size, (truth, error, size)
    assert abs(found - truth) <= 1e-6 * max(abs(truth), 0.03 * size), (found, truth, error)
