"""Closed forms of strips, MuJoCo's hanging flex, and how long a squeezed ball stays where it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpsim as ws
from cloth_scenes import new_world
from deformable_support import final_state, grid_sheet
from warpsim.deformable.description import Matter, Sheet
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram
from warpsim.io.usd import author
from warpsim.tape import CheckpointedTape

mujoco = pytest.importorskip("mujoco")


@pytest.mark.parametrize("stretch", [1.05, 1.4])
def test_stretched_strip_pulls_as_st_venant_and_kirchhoff_say(stretch):
    """Free to narrow: E₂₂ = −νE₁₁, and a width of W is pulled by λ₁·E·t·E₁₁·W."""
    young, poisson, thickness, length, width = 1e5, 0.3, 1e-3, 0.3, 0.1
    points, triangles = grid_sheet(7, 3, length, width)
    ends = np.flatnonzero((points[:, 0] == 0.0) | (points[:, 0] == length))
    part = Sheet(triangles, young=young, poisson=poisson, thickness=thickness, density=10.0, bending=0.0)
    strain = 0.5 * (stretch**2 - 1.0)
    narrow = np.sqrt(1.0 - 2.0 * poisson * strain)
    moved = points * [stretch, narrow, 1.0]
    model = build(Matter(points, [part], pinned=ends), time_step=10.0, gravity=(0.0, 0.0, 0.0))
    program = DeformableProgram(model, controls=["pin"], outputs=["solver_status"])
    start = {"x": moved[None] + 1e-3 * np.sin(40.0 * points[None]) * [0.0, 1.0, 0.0], "v": np.zeros((1, *points.shape))}
    tape = CheckpointedTape(program, steps=4)
    run = tape.forward(start, {"pin": np.tile(moved[ends], (4, 1, 1, 1))}, keep_states=True, differentiate=False)
    x = run.states["x"].numpy()[-1, 0]
    np.testing.assert_allclose(x, moved, atol=1e-10)
    held = build(Matter(points, [part], fixed=range(len(points))), gravity=(0.0, 0.0, 0.0))
    stored = []
    for at in (stretch - 1e-4, stretch + 1e-4):
        across = np.sqrt(1.0 - poisson * (at**2 - 1.0))
        told = CheckpointedTape(DeformableProgram(held, outputs=["energy"]), steps=1).forward(
            {"x": (points * [at, across, 1.0])[None], "v": np.zeros((1, *points.shape))},
            keep_outputs=True,
            differentiate=False,
        )
        stored.append(told.outputs["energy"].numpy()[0, 0, 1])
    force = stretch * young * thickness * strain * width
    assert (stored[1] - stored[0]) / (2e-4 * length) == pytest.approx(force, rel=1e-6)


def strip_ratio(cells: int, poisson: float) -> float:
    """Sag of a clamped strip of cloth under its weight over that of a plate that bends into a cylinder."""
    length, width, young, thickness, density = 0.2, 0.05, 1e7, 1e-3, 1000.0
    points, triangles = grid_sheet(4 * cells + 1, cells + 1, length, width)
    clamped = np.flatnonzero(points[:, 0] <= length / (4 * cells) + 1e-9)
    part = Sheet(triangles, young=young, poisson=poisson, thickness=thickness, density=density)
    gravity = 1e-3
    model = build(Matter(points, [part], fixed=clamped), time_step=100.0, gravity=(0.0, 0.0, -gravity))
    program = DeformableProgram(model, outputs=["solver_status"])
    x, _ = final_state(program, 3, program.initial_state())
    free = length * (1.0 - 0.5 / (4 * cells))  # from the middle of the first hinge that turns
    plate = young * thickness**3 / (12.0 * (1.0 - poisson**2))
    return float(-x[0, points[:, 0] == length, 2].mean() / (density * thickness * gravity * free**4 / (8.0 * plate)))


def test_clamped_strip_is_a_fifth_softer_than_a_plate():
    """Bending into a cylinder costs what it costs a plate; a strip bends across, too, at a ratio of the hinges' own.

    So a narrow one sags by 1.2 times what a plate does, whatever its Poisson's ratio, and hardly by its mesh.
    """
    ratios = [strip_ratio(cells, poisson) for cells, poisson in ((2, 0.3), (4, 0.3), (4, 0.0))]
    assert 1.1 < ratios[0] < ratios[1] < 1.25
    assert ratios[2] == pytest.approx(ratios[1], rel=1e-3)


HANGING = """
<mujoco>
  <option integrator="discrete" timestep="1e-3" gravity="0 0 -9.81" tolerance="1e-12" iterations="200"/>
  <worldbody>
    <flexcomp name="sheet" type="grid" dim="2" count="6 6 1" spacing="0.05 0.05 0.05" mass="0.05" radius="0.001"
              pos="0 0 1" euler="0 90 0">
      <edge equality="false"/>
      <contact selfcollide="none" contype="0" conaffinity="0"/>
      <elasticity young="1e5" poisson="0.2" thickness="2e-3" elastic2d="stretch"/>
      <pin id="0 1 2 3 4 5"/>
    </flexcomp>
  </worldbody>
</mujoco>
"""


def test_hanging_sheet_sags_and_swings_as_mujocos_flex():
    """Strains of half a percent: places within 1 % of the sag at every moment, sag and period within 2 %."""
    mj = mujoco.MjModel.from_xml_string(HANGING)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    start, triangles = data.flexvert_xpos.copy(), mj.flex_elem.reshape(-1, 3)
    steps = 400
    path = np.full((steps, *start.shape), np.nan)
    for row in path:
        mujoco.mj_step(mj, data)
        mujoco.mj_forward(mj, data)
        row[:] = data.flexvert_xpos
    part = Sheet(triangles, young=1e5, poisson=0.2, thickness=2e-3, bending=0.0)
    ours = build(Matter(start, [part], fixed=range(6)), time_step=1e-3)
    ours.physical["mass"].assign(np.full((1, len(start)), 0.05 / len(start)))  # as flex shares it out
    program = DeformableProgram(ours, outputs=["solver_status"])
    run = CheckpointedTape(program, steps=steps).forward(
        program.initial_state(), keep_states=["x"], keep_outputs=True, differentiate=False
    )
    assert not run.outputs["solver_status"].numpy().any()
    made = run.states["x"].numpy()[1:, 0]
    low = start[:, 2] == start[:, 2].min()
    sags = [start[low, 2].mean() - places[:, low, 2].mean(axis=1) for places in (made, path)]
    assert sags[1].max() > 2e-3
    assert np.abs(made - path).max() <= 0.01 * sags[1].max()
    assert sags[0].mean() == pytest.approx(sags[1].mean(), rel=0.02)
    periods = []
    for sag in sags:
        over = sag - sag.mean()
        up = np.flatnonzero((over[:-1] < 0.0) & (over[1:] >= 0.0))
        at = up + over[up] / (over[up] - over[up + 1])
        periods.append((at[-1] - at[0]) / (len(at) - 1))
    assert periods[0] == pytest.approx(periods[1], rel=0.02)


def sunk(path: Path, seconds: float, **options: float) -> float:
    """How far a soft ball between two walls sinks after its first second, m."""
    stage, world = new_world(rate=200)
    rubber = author.material(world, "Rubber", friction=0.9)
    for name, side in (("Left", -1.0), ("Right", 1.0)):
        author.box(world, name, (0.02, 0.1, 0.1), position=(side * 0.055, 0, 0), material=rubber)
    ball = {"young": 2e4, "density": 300, "damping": 0.02, "friction": 0.9, **options}
    author.soft(world, "Ball", ball=0.04, cells=3, position=(0, 0, 0), **ball)
    author.save(stage, path)
    sim = ws.Simulator(path)
    made = sim.rollout(round(200 * (seconds + 1.0)), outputs=("ball.center", "ball.solver_status"))
    assert not made["ball.solver_status"][1:].any()
    height = made["ball.center"][:, 0, 0, 2]
    return float(height[200] - height[-1])


def test_squeezed_ball_stays_where_it_is(tmp_path):
    """Friction lets what sticks creep at f/(ι(hk + c)), so a stiff contact, or a damped one, holds it."""
    assert abs(sunk(tmp_path / "ball.usda", 1.0, contact_stiffness=1e4, contact_damping=50.0)) < 0.2e-4


@pytest.mark.long
def test_squeezed_ball_stays_for_five_seconds(tmp_path):
    assert abs(sunk(tmp_path / "ball.usda", 5.0, contact_stiffness=1e4, contact_damping=50.0)) < 1e-4
