"""What cannot be simulated is refused with a reason, or stops the run with one; nothing crashes."""

from __future__ import annotations

import numpy as np
import pytest

from particle_scenes import UPRIGHT, box_cup
from warpsim.core.errors import InputError, UnsupportedError
from warpsim.particles import Domain, Liquid, ParticleProgram, WallShape, box_lattice
from warpsim.tape import CheckpointedTape
from warpsim.tape.diagnostics import NonFiniteError

CELL = 0.01
VOLUME = (CELL / 2) ** 3
DOMAIN = Domain.around((0.0, 0.0, 0.0), (0.1, 0.1, 0.1), CELL)
BLOCK = box_lattice((0.03, 0.03, 0.03), (0.06, 0.06, 0.06), CELL / 2)


def program(**options) -> ParticleProgram:
    given = dict(volume=VOLUME, particles=len(BLOCK), step=5e-4) | options
    return ParticleProgram(DOMAIN, given.pop("liquid", Liquid()), given.pop("walls", ()), **given)


@pytest.mark.parametrize("shift", [(0.08, 0.0, 0.0), (0.0, -0.05, 0.0), (np.nan, 0.0, 0.0)])
def test_particles_outside_the_domain_are_refused(shift):
    with pytest.raises(InputError, match=r"outside the domain, e\.g\. number \d+ of world 0"):
        program().start(BLOCK + shift)


def test_a_domain_reaches_to_its_corners():
    inside = np.array([[0.0, 0.0, 0.0], [0.1, 0.1, 0.1], [0.0, 0.1, 0.05]])
    assert DOMAIN.inside(inside).all()
    assert not DOMAIN.inside(inside + [0.0, 0.0, 0.02])[1]


def test_particles_in_a_wall_are_refused():
    made = program(walls=[WallShape("box", (0.02, 0.02, 0.02))])
    with pytest.raises(InputError, match=r"particles are inside walls, e\.g\. .* deep in wall 0, a box"):
        made.start(BLOCK, walls=[[0.03, 0.03, 0.03, *UPRIGHT]])
    made.start(BLOCK, walls=[[0.009, 0.009, 0.009, *UPRIGHT]])


@pytest.mark.parametrize(
    "options, reason",
    [
        (dict(volume=CELL**3 / 2), "particles of .* fill a cell"),
        (dict(volume=0.0), "volume is positive"),
        (dict(step=2e-3), "sound travels at 10 m/s .* use at most"),
        (dict(liquid=Liquid(viscosity=50.0)), "use at most 0.00025 s"),
        (dict(step=-1.0), "positive time"),
        (dict(wall_reach=2.0), "at most 1.5 cells, and more than 0, not 2"),
    ],
)
def test_what_would_be_unstable_is_refused(options, reason):
    with pytest.raises(InputError, match=reason):
        program(**options)


def test_a_start_faster_than_the_step_allows_is_refused():
    with pytest.raises(InputError, match="the liquid at 20 m/s"):
        program().start(BLOCK, np.tile([20.0, 0.0, 0.0], (len(BLOCK), 1)))


def test_constants_and_shapes_are_checked():
    with pytest.raises(InputError, match="density"):
        Liquid(density=0.0)
    with pytest.raises(UnsupportedError, match="'mesh' cannot be a wall"):
        WallShape("mesh")
    with pytest.raises(InputError, match="stick"):
        WallShape("plane", stick=2.0)
    with pytest.raises(InputError, match="larger cells or a smaller domain"):
        Domain.around((0, 0, 0), (10, 10, 10), 1e-3)
    with pytest.raises(InputError, match="lower and an upper corner"):
        Domain.around((0, 0, 0), (0, 1, 1), 0.01)


def test_particles_that_leave_the_domain_stop_the_run():
    made = program()
    tape = CheckpointedTape(made, steps=400)
    with pytest.raises(NonFiniteError, match=r"state 'x' .* particles left the domain"):
        tape.forward(made.start(BLOCK))


def test_a_grid_that_overflows_stops_the_run():
    made = program(max_nodes=100)
    tape = CheckpointedTape(made, steps=10)
    with pytest.raises(NonFiniteError, match="there is room for 100; set max_nodes to at least 216$") as caught:
        tape.forward(made.start(BLOCK))
    assert caught.value.shortage.places == 100 < caught.value.shortage.needed


def test_too_many_walls_at_one_place_stop_the_run():
    made = program(walls=[WallShape("plane")] * 9)
    tape = CheckpointedTape(made, steps=10)
    poses = np.tile([0.0, 0.0, 0.025, *UPRIGHT], (9, 1))
    with pytest.raises(NonFiniteError, match="from fewer pieces"):
        tape.forward(made.start(BLOCK, walls=poses), made.standing(10, poses))


def test_a_cup_needs_no_more_walls_than_there_are_places_for():
    shapes, poses = box_cup(0.03, 0.05, 0.002, lid=True)
    poses[:, :3] += [0.05, 0.05, 0.02]
    x = box_lattice((0.035, 0.035, 0.02), (0.065, 0.065, 0.06), CELL / 2)
    made = program(walls=shapes, particles=len(x))
    CheckpointedTape(made, steps=5).forward(made.start(x, walls=poses), made.standing(5, poses))
