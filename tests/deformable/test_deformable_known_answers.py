"""Known answers on scenes, where faces touch as well as points, and a beam against Timoshenko's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpsim as ws
from deformable_support import block, final_state
from warpsim.deformable.description import Matter, Volume
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram
from warpsim.geometry.quadratic import with_middles
from warpsim.io.usd import author

SIDE, DENSITY, FRICTION = 0.125, 256.0, 0.4
"""m, kg/m³: numbers that a stage holds exactly."""
MASS = DENSITY * SIDE**3


def lying_block(path: Path, angle: float = 0.0, rate: int = 200, friction: float = FRICTION) -> ws.Simulator:
    """A soft block on a plane, with gravity leaning by an angle toward x."""
    stage = author.new_stage()
    author.physics_scene(stage, steps_per_second=rate, direction=(np.sin(angle), 0.0, -np.cos(angle)))
    world = author.world(stage)
    author.ground(world, material=author.material(world, "Rough", friction=friction))
    contact = {"friction": friction, "contact_stiffness": 1e4, "contact_damping": 1e4 / rate}
    soft = {"young": 2e5, "density": DENSITY, "damping": 0.01}
    author.soft(world, "Block", box=(SIDE, SIDE, SIDE), cells=2, position=(0, 0, 0.5 * SIDE), **soft, **contact)
    author.save(stage, path)
    return ws.Simulator(path)


def test_contact_force_is_the_weight(tmp_path: Path) -> None:
    """Without friction, which lets a foot creep into place for seconds."""
    made = lying_block(tmp_path / "rest.usda", friction=0.0).rollout(400, outputs=("block.contact_force",))
    force = made["block.contact_force"][-1, 0].sum(dim=0).numpy()
    np.testing.assert_allclose(force, [0.0, 0.0, 9.81 * MASS], rtol=0, atol=1e-8 * 9.81 * MASS)


@pytest.mark.parametrize("ratio", [0.99, 1.01])
def test_block_on_an_incline_sticks_or_slips(ratio: float, tmp_path: Path) -> None:
    """At tan θ = 0.99 μ it stays, at 1.01 μ it slips, with g(sin θ − μ cos θ)."""
    angle, steps = np.arctan(FRICTION * ratio), 300
    sim = lying_block(tmp_path / "incline.usda", float(angle))
    center = sim.rollout(2 * steps, outputs=("block.center",))["block.center"][:, 0, 0, 0].numpy()
    early, late = ((center[k] - center[k - 20]) / (20 / 200) for k in (steps, 2 * steps))
    gained = (late - early) / (steps / 200)
    if ratio < 1.0:
        assert abs(gained) < 1e-4
        assert abs(late) < 1e-3
    else:
        assert gained == pytest.approx(9.81 * (np.sin(angle) - FRICTION * np.cos(angle)), rel=0.01)


def test_sliding_block_lies_as_low_as_a_resting_one(tmp_path: Path) -> None:
    """At 1 m/s, its lower side within 0.1 mm."""
    sim = lying_block(tmp_path / "slide.usda", rate=400, friction=0.5)
    rest = sim.rollout(400)
    x, v = rest["block.x"][-1, 0].clone(), rest["block.v"][-1, 0].clone()
    v[:, 0] += 1.0
    slid = sim.rollout(30, start={"block.x": x, "block.v": v})["block.x"][-1, 0]
    assert float((slid - x)[:, 0].mean()) > 0.04
    bottom = x[:, 2] < 0.01
    assert int(bottom.sum()) == 9
    assert abs(float((slid - x)[bottom, 2].mean())) < 1e-4


def beam_ratio(cells: int, order: int = 1) -> float:
    """Deflection of a cantilever under its weight, so many cells thick, over Timoshenko's."""
    length, side, young, poisson, density = 0.5, 0.1, 1e6, 0.3, 1000.0
    points, tetrahedra = block((5 * cells, cells, cells), (length, side, side))
    if order == 2:
        points, middles = with_middles(points, tetrahedra)
        tetrahedra = np.concatenate([tetrahedra, middles], axis=1)
    fixed = np.flatnonzero(points[:, 0] == 0.0)
    volume = Volume(tetrahedra, young=young, poisson=poisson, density=density)
    # a step of 100 s leaves nothing of inertia; little gravity keeps strains small
    model = build(Matter(points, [volume], fixed=fixed.tolist()), time_step=100.0, gravity=(0.0, 0.0, -0.01))
    program = DeformableProgram(model, outputs=["solver_status"])
    x, _ = final_state(program, 3, program.initial_state())
    tip = points[:, 0] == length
    load, area, inertia = 0.01 * density * side**2, side**2, side**4 / 12
    shear = young / (2 * (1 + poisson)) * 10 * (1 + poisson) / (12 + 11 * poisson)
    expected = load * length**4 / (8 * young * inertia) + load * length**2 / (2 * shear * area)
    return float((points[tip, 2] - x[0, tip, 2]).mean() / expected)


def test_cantilever_approaches_timoshenko_from_below():
    """Linear tetrahedra lock in shear: far too stiff with few cells, and softer with each more."""
    errors = [1.0 - beam_ratio(cells) for cells in (1, 2)]
    assert 0.0 < errors[1] < 0.7 * errors[0] < 0.7


def test_quadratic_cantilever_is_near_timoshenko_with_one_cell():
    assert abs(beam_ratio(1, order=2) - 1.0) < 0.06


@pytest.mark.long
def test_quadratic_cantilever_is_timoshenkos():
    """Within 3 % at two and at four cells; what is left is the clamped end, which a beam does not know."""
    ratios = [beam_ratio(cells, order=2) for cells in (2, 4)]
    assert 0.97 < ratios[0] < ratios[1] < 1.0


@pytest.mark.long
def test_cantilever_converges_to_timoshenko():
    errors = [1.0 - beam_ratio(cells) for cells in (2, 4)]
    assert 0.0 < errors[1] < 0.23
    assert np.log2(errors[0] / errors[1]) > 1.1
