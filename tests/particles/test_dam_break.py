"""The front of a collapsing column against the experiment of Martin & Moyce (1952)."""

from __future__ import annotations

import numpy as np
import pytest

from particle_scenes import UPRIGHT
from warpsim.particles import Domain, Liquid, ParticleProgram, WallShape, box_lattice
from warpsim.tape import CheckpointedTape

# Phil. Trans. R. Soc. A 244, 312: a column of width a = 2¼ in and height 2a; T = t √(2g/a), Z = front / a.
MARTIN_MOYCE = np.array(
    [(1.19, 1.44), (1.43, 1.67), (1.63, 1.89), (1.83, 2.11), (1.98, 2.33), (2.20, 2.56), (2.32, 2.78), (2.51, 3.00)]
)
WIDTH = 0.05715


@pytest.mark.long
def test_the_front_of_a_dam_break():
    cell, step = WIDTH / 10, 1.25e-4
    depth = 4 * cell
    x = box_lattice((0.0, 0.0, 0.0), (WIDTH, depth, 2 * WIDTH), cell / 2)
    program = ParticleProgram(
        Domain.around((-0.01, -0.01, -0.01), (5 * WIDTH, depth + 0.01, 2.2 * WIDTH), cell),
        Liquid(1000.0, 4e5, 1e-3),
        [WallShape("plane")] * 4,
        volume=(cell / 2) ** 3,
        particles=len(x),
        step=step,
    )
    half = np.sqrt(0.5)
    poses = np.array(
        [
            [0, 0, 0, *UPRIGHT],
            [0, 0, 0, half, 0, half, 0],  # z to x
            [0, 0, 0, half, -half, 0, 0],  # z to y
            [0, depth, 0, half, half, 0, 0],  # z to −y
        ]
    )
    scale = np.sqrt(WIDTH / (2 * 9.81))
    steps = 10 * int(2.6 * scale / step / 10)
    tape = CheckpointedTape(program, steps=steps, memory="1GB")
    run = tape.forward(
        program.start(x, walls=poses),
        program.standing(steps, poses),
        keep_states=["x"],
        keep_every=10,
        differentiate=False,
    )
    front = np.quantile(run.states["x"].numpy()[:, 0, :, 0], 0.995, axis=1) / WIDTH
    time = np.arange(len(front)) * 10 * step / scale
    reached = np.interp(MARTIN_MOYCE[:, 0], time, front)
    print(np.c_[MARTIN_MOYCE, reached])
    # the experiment's front starts late (its gate takes time to leave), so the speed is compared, too
    speed = np.polyfit(MARTIN_MOYCE[2:, 0], reached[2:], 1)[0]
    measured = np.polyfit(MARTIN_MOYCE[2:, 0], MARTIN_MOYCE[2:, 1], 1)[0]
    print(speed, measured)
    assert abs(speed / measured - 1.0) < 0.06
    assert np.abs(reached / MARTIN_MOYCE[:, 1] - 1.0).max() < 0.07
