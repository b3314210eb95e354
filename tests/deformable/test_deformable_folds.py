"""Angles of rest: hinges against differences and closed forms, strips that bend by themselves, and their USD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import warp as wp
from pxr import Sdf, Usd, Vt

import warpsim as ws
from cloth_scenes import directional, new_world, random_direction
from deformable_support import final_state, grid_sheet
from warpsim.core.errors import SceneError
from warpsim.core.precision import mat33, real, vec3
from warpsim.deformable.description import Matter, Sheet
from warpsim.deformable.fold import Folds, fold_energy, fold_line, fold_terms
from warpsim.deformable.model import DeformableModel, build
from warpsim.deformable.program import DeformableProgram
from warpsim.deformable.topology import hinges
from warpsim.io.usd import author
from warpsim.io.usd.export.scene import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.tape import CheckpointedTape


@wp.kernel(enable_backward=False)
def _terms_kernel(
    f: Folds,
    x: wp.array2d(dtype=vec3),
    energy: wp.array(dtype=real),
    gradient: wp.array2d(dtype=vec3),
    blocks: wp.array2d(dtype=mat33),
):
    for e in range(f.count):
        energy[0] += fold_energy(f, 0, e, x)
    fold_terms(f, 0, x, real(1.0), 0, gradient, blocks)


@wp.kernel(enable_backward=False)
def _line_kernel(
    f: Folds, x: wp.array2d(dtype=vec3), step: wp.array2d(dtype=vec3), alpha: real, line: wp.array(dtype=vec3)
):
    line[0] = fold_line(f, 0, x, step, alpha)


class Hinges:
    """Energy of folds of a crumpled sheet, with its derivatives."""

    def __init__(self, rng: np.random.Generator) -> None:
        points, triangles = grid_sheet(4, 3, 0.3, 0.2)
        count = len(hinges(triangles)[0])
        part = Sheet(triangles, young=1e4, bending=1e4, angle=rng.uniform(-2.0, 2.0, count))
        self.model = build(Matter(points, [part]))
        self.x = points + 0.02 * rng.standard_normal(points.shape)

    def terms(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Energy, gradient (n, 3), Hessian (3n, 3n)."""
        pattern, n = self.model.pattern, len(x)
        energy, gradient = wp.zeros(1, dtype=real), wp.zeros((1, n), dtype=vec3)
        blocks = wp.zeros((1, pattern.blocks), dtype=mat33)
        given = [self.model.elements.folds, wp.array(x[None], dtype=vec3)]
        wp.launch(_terms_kernel, dim=1, inputs=given, outputs=[energy, gradient, blocks])
        found, whole = blocks.numpy()[0], np.zeros((n, 3, n, 3))
        for k in range(n):
            whole[k, :, k] = found[k]
        for (row, column), part in zip(pattern.couplings, found[n:], strict=True):
            whole[row, :, column], whole[column, :, row] = part, part.T
        return float(energy.numpy()[0]), gradient.numpy()[0].copy(), whole.reshape(3 * n, -1)


def test_gradient_and_hessian_match_differences(rng):
    case = Hinges(rng)
    direction = rng.standard_normal(case.x.shape)
    _, gradient, hessian = case.terms(case.x)
    assert np.abs(hessian - hessian.T).max() <= 1e-14 * np.abs(hessian).max()
    found = {}
    for eps in (2e-6, 1e-6):
        ends = [case.terms(case.x + sign * eps * direction) for sign in (1.0, -1.0)]
        found[eps] = [(ends[0][k] - ends[1][k]) / (2 * eps) for k in (0, 1)]
    slope, change = ((4 * fine - coarse) / 3 for fine, coarse in zip(found[1e-6], found[2e-6], strict=True))
    assert np.vdot(gradient, direction) == pytest.approx(slope, rel=1e-8)
    exact = (hessian @ direction.ravel()).reshape(-1, 3)
    assert np.abs(exact - change).max() <= 1e-8 * np.abs(exact).max()


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_line_is_the_energy_along_it(rng, alpha):
    case = Hinges(rng)
    step = 0.02 * rng.standard_normal(case.x.shape)
    line = wp.zeros(1, dtype=vec3)
    places = [wp.array(values[None], dtype=vec3) for values in (case.x, step)]
    wp.launch(_line_kernel, dim=1, inputs=[case.model.elements.folds, *places, alpha], outputs=[line])
    energy, gradient, _ = case.terms(case.x + alpha * step)
    assert line.numpy()[0, 0] == pytest.approx(energy, rel=1e-13)
    assert line.numpy()[0, 1] == pytest.approx(np.vdot(gradient, step), rel=1e-11)


def strip(angle: float, **options: Any) -> DeformableModel:
    """A strip of six squares whose edges across it are bent by an angle at rest."""
    points, triangles = grid_sheet(7, 2, 0.3, 0.05)
    stencils, _ = hinges(triangles)
    across = points[stencils[:, 0], 0] == points[stencils[:, 1], 0]
    part = Sheet(triangles, young=1e5, bending=50.0, angle=np.where(across, angle, 0.0), **options)
    return build(Matter(points, [part]), time_step=0.1, gravity=(0.0, 0.0, 0.0), mass_damping=5.0)


def angles(model: DeformableModel, x: np.ndarray) -> np.ndarray:
    """(n,) of a model's folds, from the normals of their triangles."""
    v = model.topology.folds
    edge = x[v[:, 1]] - x[v[:, 0]]
    a, b = np.cross(edge, x[v[:, 2]] - x[v[:, 0]]), np.cross(x[v[:, 3]] - x[v[:, 0]], edge)
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    side = (edge * np.cross(a, b)).sum(axis=1)
    return np.sign(side) * np.arccos(np.clip((a * b).sum(axis=1) / size, -1.0, 1.0))


@pytest.mark.parametrize("angle", [0.4, -0.7])
def test_strip_rolls_up_to_its_angles_of_rest(angle):
    """Flat at first; all normals are up, so positive angles bend its ends down."""
    model = strip(angle)
    program = DeformableProgram(model, outputs=["solver_status"])
    x, _ = final_state(program, 400, program.initial_state())
    np.testing.assert_allclose(angles(model, x[0]), model.physical["folds.angle"].numpy()[0], atol=1e-6)
    bow = x[0, [0, 1, 12, 13], 2].mean() - x[0, [6, 7], 2].mean()
    assert np.sign(bow) == -np.sign(angle)


def test_bent_rest_shape_is_at_rest(rng):
    """Where its angles count it stores nothing and nothing moves; otherwise it becomes flat."""
    points, triangles = grid_sheet(5, 4, 0.3, 0.2)
    points[:, 2] = 0.05 * np.sin(12.0 * points[:, 0]) + 0.01 * rng.standard_normal(len(points))
    for shaped in (True, False):
        part = Sheet(triangles, young=1e5, bending=50.0, angle=0.0, shaped=shaped)
        program = DeformableProgram(build(Matter(points, [part]), gravity=(0.0, 0.0, 0.0)), outputs=["solver_status"])
        x, _ = final_state(program, 5, program.initial_state())
        moved = np.abs(x[0] - points).max()
        assert moved < 1e-12 if shaped else moved > 1e-4


def test_small_bends_cost_what_they_cost_a_flat_hinge():
    points, triangles = grid_sheet(5, 4, 0.3, 0.2)
    bent = points + [[0.0, 0.0, 1.0]] * (0.02 * points[:, :1] ** 2)
    energies = []
    for angle in (None, 0.0):
        part = Sheet(triangles, young=1e-3, thickness=1.0, bending=1.0, angle=angle)
        model = build(Matter(points, [part], fixed=range(len(points))))
        from_rest = DeformableProgram(model, outputs=["energy"])
        start = {"x": bent[None], "v": np.zeros((1, *bent.shape))}
        run = CheckpointedTape(from_rest, steps=1).forward(start, keep_outputs=True, differentiate=False)
        energies.append(run.outputs["energy"].numpy()[0, 0, 1])
    assert energies[1] == pytest.approx(energies[0], rel=1e-3)
    assert energies[0] > 0.0


PAIRS = {(0, 1): 30.0, (2, 3): -20.0}


def scene(path: Path, **options: Any) -> Path:
    """A strip that hangs from a corner."""
    stage, world = new_world()
    bent = {"rest_angles": PAIRS, "young": 1e5, "thickness": 2e-3, "bending": 20.0, "damping": 0.02, **options}
    cloth = author.cloth(world, "Cloth", (0.3, 0.1), (4, 1), position=(0, 0, 1), **bent)
    author.attach(cloth, "Hold", [0, 1])
    author.save(stage, path)
    return path


def test_stage_is_read_and_written(tmp_path):
    first = read_usd(scene(tmp_path / "a.usda"), strict=True)
    matter = first.matters[0]
    _, sides = hinges(matter.data["elements"])
    expected = [np.radians(PAIRS.get(tuple(sorted(pair)), 0.0)) for pair in sides.tolist()]
    np.testing.assert_allclose(matter.parameters["rest_angle"], expected, atol=1e-7)
    assert np.count_nonzero(expected) == 2
    stage, notes = export_scene(first)
    assert notes == []
    again = read_usd(stage, strict=True).matters[0]
    np.testing.assert_allclose(again.parameters["rest_angle"], expected, atol=1e-7)


def test_rest_shape_gives_angles_where_the_stage_says_so(tmp_path):
    points, _ = grid_sheet(5, 2, 0.3, 0.1)
    rest = points + [[0.0, 0.0, 1.0]] * (0.5 * points[:, :1] ** 2)
    made = read_usd(scene(tmp_path / "a.usda", rest_angles="shape", rest_points=rest), strict=True)
    assert made.matters[0].data["shaped"].all()
    assert not made.matters[0].parameters["rest_angle"].any()
    stage, notes = export_scene(made)
    assert notes == []
    assert read_usd(stage, strict=True).matters[0].data["shaped"].all()


def test_flat_cloth_has_no_such_parameter(tmp_path):
    names = read_usd(scene(tmp_path / "a.usda", rest_angles=None), strict=True).matters[0].parameters
    assert "rest_angle" not in names
    assert "bending" in names


def test_cloth_without_bending_says_so(tmp_path):
    made = read_usd(scene(tmp_path / "a.usda", rest_angles=None, bending=0.0), strict=True)
    assert not {"bending", "bending_scale", "rest_angle"} & set(made.matters[0].parameters)
    assert any("no hinges" in str(entry) for entry in made.ledger)
    sim = ws.Simulator(made)
    assert float(sim.rollout(5)["cloth.x"][-1].abs().max()) > 0.0
    again, notes = export_scene(made)
    assert notes == []
    assert "bending" not in read_usd(again, strict=True).matters[0].parameters


@pytest.mark.parametrize(
    ("pairs", "degrees", "message"),
    [
        ([(0, 7)], [10.0], "/World/Cloth: restAdjTriPairs 0: triangles 0 and 7 share no edge"),
        ([(0, 1), (1, 0)], [10.0, 20.0], "restAdjTriPairs 1: triangles 0 and 1 are named twice"),
        ([(0, 1)], [10.0, 20.0], "2 restBendAngles for 1 restAdjTriPairs"),
        ([(0, 1)], [200.0], "restBendAngles 0 is 200; it must be within"),
    ],
)
def test_wrong_angles_are_named(pairs, degrees, message, tmp_path):
    stage = Usd.Stage.Open(str(scene(tmp_path / "a.usda", rest_angles=None)))
    prim = stage.GetPrimAtPath("/World/Cloth")
    prim.CreateAttribute("physics:restAdjTriPairs", Sdf.ValueTypeNames.Int2Array).Set(Vt.Vec2iArray(pairs))
    prim.CreateAttribute("physics:restBendAngles", Sdf.ValueTypeNames.FloatArray).Set(Vt.FloatArray(degrees))
    with pytest.raises(SceneError, match=message):
        read_usd(stage)


def test_gradient_by_angles_matches_differences(tmp_path):
    sim = ws.Simulator(scene(tmp_path / "a.usda"))
    rest = sim.parameter("cloth.rest_angle")[0].clone()
    weights = torch.as_tensor(np.random.default_rng(2).normal(size=tuple(sim.rollout(1)["cloth.x"][-1].shape)))

    def loss(values: dict[str, torch.Tensor]) -> torch.Tensor:
        made = sim.rollout(20, parameters={"cloth.rest_angle": values["angle"]})
        return (made["cloth.x"][-1] * weights).sum()

    direction = random_direction(rest, np.random.default_rng(3))
    truth, error = directional(loss, {"angle": rest}, "angle", direction, 1e-3)
    leaf = rest.clone().requires_grad_()
    loss({"angle": leaf}).backward()
    assert leaf.grad is not None
    found = float((leaf.grad * direction).sum())
    assert error < 1e-5 * abs(truth)
    assert found == pytest.approx(truth, rel=1e-8)


def test_each_sheet_keeps_its_own_angles():
    points, triangles = grid_sheet(3, 3, 0.2, 0.2)
    both = np.concatenate([points, points + [0.0, 0.0, 1.0]])
    parts = [
        Sheet(triangles + k * len(points), young=1e4, bending=1.0, angle=angle) for k, angle in enumerate((0.1, 0.7))
    ]
    alone = build(Matter(points, [Sheet(triangles, young=1e4, bending=1.0, angle=0.1)]))
    folds = len(alone.topology.folds)
    model = build(Matter(both, parts))
    assert len(alone.authored["folds.angle"].numpy()[0]) == folds
    np.testing.assert_array_equal(model.physical["folds.angle"].numpy()[0], np.repeat([0.1, 0.7], folds))
    limp = [Sheet(triangles, young=1e4, bending=0.0, angle=0.1), parts[1]]
    np.testing.assert_array_equal(build(Matter(both, limp)).physical["folds.angle"].numpy()[0], np.full(folds, 0.7))
