"""The implicit step of matter against closed forms and conservation laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deformable_support import block, final_state, grid_sheet, mixed_matter, settle
from warpsim.deformable.description import Curve, Matter, Sheet, Volume
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram
from warpsim.geometry.quadratic import with_middles
from warpsim.tape import CheckpointedTape

STATIC = 10.0
"""A time step, s, so long that hardly any inertia is left: a few steps find the equilibrium."""


def boundary(points: np.ndarray, axes: int) -> np.ndarray:
    """Vertices on the border of a grid."""
    low, high = points.min(axis=0)[:axes], points.max(axis=0)[:axes]
    return np.flatnonzero(((points[:, :axes] == low) | (points[:, :axes] == high)).any(axis=1))


@pytest.mark.parametrize("kind", ["triangles", "tetrahedra", "quadratic tetrahedra"])
def test_patch(kind, rng):
    """With its border moved by an affine map, the inside follows the same map."""
    if kind == "triangles":
        points, elements = grid_sheet(5, 5)
        part, axes = Sheet(elements, young=1e4, density=10.0), 2
    else:
        points, elements = block((3, 3, 3), (1.0, 1.0, 1.0))
        part, axes = Volume(elements, young=1e4, density=10.0), 3
    inside = np.setdiff1d(np.arange(len(points)), boundary(points, axes))
    points[inside, :axes] += 0.04 * rng.standard_normal((len(inside), axes))
    if kind == "quadratic tetrahedra":
        points, middles = with_middles(points, elements)
        part = replace(part, tetrahedra=np.concatenate([elements, middles], axis=1))
    border = boundary(points, axes)
    matter = Matter(points, [part], pinned=border)
    model = build(matter, time_step=STATIC, gravity=(0.0, 0.0, 0.0))
    affine = 1.3 * np.eye(3) + 0.05 * rng.standard_normal((3, 3))  # in tension, or a sheet would buckle
    moved = points @ affine.T
    program = DeformableProgram(model, controls=["pin"], outputs=["solver_status"])
    x, _ = final_state(program, 8, program.initial_state(), {"pin": np.tile(moved[border], (8, 1, 1, 1))})
    assert np.abs(x[0] - moved).max() <= 1e-12


@pytest.mark.parametrize("kind", ["sheet", "volume"])
def test_uniaxial_stretch_gives_young_and_poisson(kind):
    young, poisson, thickness, size = 2e5, 0.35, 0.01, 0.2
    if kind == "sheet":
        points, elements = grid_sheet(4, 4, size, size)
        part, section = (
            Sheet(elements, young=young, poisson=poisson, thickness=thickness, density=10.0),
            size * thickness,
        )
    else:
        points, elements = block((2, 2, 2), (size, size, size))
        part, section = Volume(elements, young=young, poisson=poisson, density=10.0), size * size
    strain = 1e-5
    force = np.zeros_like(points)
    for side, sign in ((0.0, -1.0), (size, 1.0)):
        end = np.flatnonzero(points[:, 0] == side)
        share = np.zeros(len(points))
        if kind == "sheet":
            inner = (points[end, 1] > 0) & (points[end, 1] < size)
            share[end] = np.where(inner, 1.0, 0.5)
        else:
            for element in elements:
                corners = np.intersect1d(element, end)
                if len(corners) == 3:
                    share[corners] += 1.0
        force[:, 0] += sign * young * strain * section * share / share.sum()
    model = build(Matter(points, [part]), time_step=STATIC, gravity=(0.0, 0.0, 0.0))
    program = DeformableProgram(model, controls=["force"], outputs=["solver_status"])
    x, _ = final_state(program, 2, program.initial_state(), {"force": np.tile(force, (2, 1, 1, 1))})
    stretch = (np.ptp(x[0], axis=0) - np.ptp(points, axis=0))[:2] / size
    assert stretch[0] == pytest.approx(strain, rel=1e-3)
    assert -stretch[1] / stretch[0] == pytest.approx(poisson, rel=1e-3)


def test_hanging_cable_stretches_under_its_weight():
    """Each segment carries what hangs below it: T = kE·|d|/ℓ with Green's strain E."""
    n, length, young, radius, density = 12, 2.0, 2e5, 5e-3, 1000.0
    points = np.stack([np.zeros(n + 1), np.zeros(n + 1), -np.linspace(0, length, n + 1)], axis=1)
    part = Curve(range(n + 1), young=young, radius=radius, density=density, bending=0.0)
    x = settle(build(Matter(points, [part], fixed=[0]), time_step=STATIC), 12)
    stiffness, spacing = young * np.pi * radius**2, length / n
    mass = density * np.pi * radius**2 * spacing
    for i in range(n):
        tension = 9.81 * mass * (n - i - 0.5)
        stretch = max(np.roots([0.5, 0.0, -0.5, -tension / stiffness]).real)
        assert x[i, 2] - x[i + 1, 2] == pytest.approx(stretch * spacing, rel=1e-10)


def test_slack_cable_hangs_as_a_catenary():
    n, span, a = 60, 1.0, 0.6
    length = 2 * a * np.sinh(span / (2 * a))
    points = np.stack([np.linspace(0, length, n + 1), np.zeros(n + 1), np.zeros(n + 1)], axis=1)
    part = Curve(range(n + 1), young=1e7, radius=2e-3, bending=0.0)
    model = build(Matter(points, [part], fixed=[0, n]), time_step=0.1, mass_damping=5.0)
    s = np.linspace(-0.5, 0.5, n + 1)
    start = np.stack([span * (s + 0.5), 0 * s, span * (s**2 - 0.25)], axis=1)
    program = DeformableProgram(model, outputs=["solver_status"])
    x, _ = final_state(program, 60, {"x": start[None], "v": np.zeros((1, n + 1, 3))})
    sag = a * (np.cosh(span / (2 * a)) - 1.0)
    assert -x[0, n // 2, 2] == pytest.approx(sag, rel=5e-3)
    curve = a * np.cosh((x[0, :, 0] - span / 2) / a) - a * np.cosh(span / (2 * a))
    assert np.abs(x[0, :, 2] - curve).max() <= 5e-3 * sag


def test_sheet_bent_into_a_cylinder_stores_the_energy_of_a_plate():
    """½Dκ² per area, D = Et³/12(1 − ν²), where rows of squares turn by the same angle and none is stretched."""
    cells, rows, spacing, angle = 12, 4, 0.02, 0.1
    young, poisson, thickness = 1e7, 0.3, 1e-3
    points, triangles = grid_sheet(cells + 1, rows + 1, cells * spacing, rows * spacing)
    part = Sheet(triangles, young=young, poisson=poisson, thickness=thickness)
    model = build(Matter(points, [part], fixed=range(len(points))), gravity=(0.0, 0.0, 0.0))
    turns = angle * np.arange(cells)
    chain = np.concatenate([[[0, 0]], np.cumsum(spacing * np.stack([np.cos(turns), np.sin(turns)], axis=1), axis=0)])
    x = np.stack([np.repeat(chain[:, 0], rows + 1), points[:, 1], np.repeat(chain[:, 1], rows + 1)], axis=1)
    total = energies(model, {"x": x[None], "v": np.zeros((1, len(x), 3))}, 1)[0]
    plate = young * thickness**3 / (12 * (1 - poisson**2))
    area = (cells - 1) * spacing * rows * spacing
    assert total == pytest.approx(0.5 * plate * (2 * np.sin(angle / 2) / spacing) ** 2 * area, rel=1e-9)


def test_momentum_is_kept_in_free_flight(rng):
    matter = mixed_matter(rng)
    model = build(Matter(matter.points, matter.parts), gravity=(0.0, 0.0, 0.0))
    program = DeformableProgram(model, outputs=["solver_status"])
    state = program.initial_state()
    state["v"] = rng.standard_normal(state["x"].shape)
    mass = model.physical["mass"].numpy()[0, :, None]
    _, v = final_state(program, 50, state)
    before, after = (mass * state["v"][0]).sum(axis=0), (mass * v[0]).sum(axis=0)
    assert np.abs(after - before).max() <= 1e-13 * np.abs(mass * v[0]).sum()
    assert np.abs(v[0] - state["v"][0]).max() > 0.1


def energies(model, state: dict[str, np.ndarray], steps: int) -> np.ndarray:
    """(steps,) total energy of world 0 after each step, J."""
    program = DeformableProgram(model, outputs=["energy", "solver_status"])
    run = CheckpointedTape(program, steps=steps).forward(state, keep_outputs=True, differentiate=False)
    assert not run.outputs["solver_status"].numpy().any()
    return run.outputs["energy"].numpy()[:, 0].sum(axis=-1)


def test_energy_never_rises_on_a_taut_cable():
    """Ψ is convex where every segment is in tension."""
    n = 16
    points = np.stack([np.linspace(0, 1, n + 1), np.zeros(n + 1), np.zeros(n + 1)], axis=1)
    model = build(Matter(points, [Curve(range(n + 1), young=1e6)], fixed=[0, n]), gravity=(0.0, 0.0, 0.0))
    x = points * [1.3, 1.0, 1.0]
    x[:, 2] = 0.2 * np.sin(3 * np.pi * points[:, 0]) ** 3
    total = energies(model, {"x": x[None], "v": np.zeros((1, n + 1, 3))}, 100)
    assert np.diff(total).max() <= 1e-14 * total[0]
    assert total[-1] < total[0]


def test_energy_of_swinging_cloth_hardly_rises():
    points, triangles = grid_sheet(6, 6)
    model = build(Matter(points, [Sheet(triangles, young=1e6)], fixed=[0, 5]), time_step=5e-3)
    program = DeformableProgram(model)
    total = energies(model, program.initial_state(), 200)
    swing = 9.81 * model.physical["mass"].numpy().sum()  # J: it falls by about its length
    assert np.diff(total).max() <= 1e-3 * swing
    assert total[-1] - total[0] <= 0.0


def test_inverted_tetrahedra_recover():
    points, tetrahedra = block((1, 1, 1), (0.1, 0.1, 0.1))
    model = build(
        Matter(points, [Volume(tetrahedra, young=1e4, damping=0.02)]), gravity=(0.0, 0.0, 0.0), mass_damping=2.0
    )
    program = DeformableProgram(model)
    state = program.initial_state()
    state["x"][0, 7] = [-0.05, -0.04, -0.06]

    def volumes(x: np.ndarray) -> np.ndarray:
        return np.linalg.det(x[tetrahedra[:, 1:]] - x[tetrahedra[:, :1]]) / 6.0

    assert (volumes(state["x"][0]) < 0).any()
    x, _ = final_state(program, 300, state)
    assert volumes(x[0]) == pytest.approx(volumes(points), rel=1e-4)
    distances = [np.linalg.norm(p[:, None] - p[None], axis=2) for p in (x[0], points)]
    assert np.abs(distances[0] - distances[1]).max() <= 1e-5


def test_balance_in_compression_is_called_a_saddle():
    """A straight cable pressed together is in balance, and would buckle: converged is not the word for it."""
    n = 8
    points = np.stack([np.linspace(0, 1, n + 1), np.zeros(n + 1), np.zeros(n + 1)], axis=1)
    part = Curve(range(n + 1), young=1e6, bending=0.0)
    model = build(Matter(points, [part], fixed=[0, n]), gravity=(0.0, 0.0, 0.0))
    program = DeformableProgram(model, outputs=["solver_status"])
    tape = CheckpointedTape(program, steps=1)
    for squeeze, status in ((0.9, 2), (1.1, 0)):
        state = {"x": points[None] * [squeeze, 1.0, 1.0], "v": np.zeros((1, n + 1, 3))}
        run = tape.forward(state, keep_outputs=True, differentiate=False)
        assert run.outputs["solver_status"].numpy().item() == status
