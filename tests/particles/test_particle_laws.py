"""Laws a liquid must obey: mass, free fall, momentum, hydrostatics, walls that hold, the wrench on them."""

from __future__ import annotations

import numpy as np
import pytest

from particle_scenes import UPRIGHT, about_y, box_cup, placed, rotation_matrix
from warpsim.particles import Domain, Liquid, ParticleProgram, WallShape, box_lattice
from warpsim.tape import CheckpointedTape

CELL = 0.01
VOLUME = (CELL / 2) ** 3


def roll(program, start, inputs=None, steps=100, keep_every=1):
    tape = CheckpointedTape(program, steps=steps, memory="1GB")
    run = tape.forward(
        start, inputs, keep_states=True, keep_outputs=["wrench"], keep_every=keep_every, differentiate=False
    )
    return {name: run.states[name].numpy() for name in run.states}, run.outputs["wrench"].numpy()


def momentum(states: dict[str, np.ndarray], mass: float) -> tuple[np.ndarray, np.ndarray]:
    """(steps + 1, 3) momentum, and angular momentum about the origin with the spin of each affine field."""
    x, v, rate = (states[name][:, 0] for name in ("x", "v", "rate"))
    axial = np.stack(
        [rate[..., 2, 1] - rate[..., 1, 2], rate[..., 0, 2] - rate[..., 2, 0], rate[..., 1, 0] - rate[..., 0, 1]], -1
    )
    spin = np.cross(x, v) + CELL**2 / 4 * axial
    return mass * v.sum(1), mass * spin.sum(1)


def test_a_block_falls_freely_and_keeps_its_shape():
    x = box_lattice((0.04, 0.04, 0.2), (0.07, 0.07, 0.23), CELL / 2)
    program = ParticleProgram(
        Domain.around((0, 0, 0), (0.12, 0.12, 0.3), CELL), Liquid(), volume=VOLUME, particles=len(x), step=5e-4
    )
    states, wrench = roll(program, program.start(x, np.tile([0.1, 0.0, 0.3], (len(x), 1))))
    k = np.arange(101)[:, None, None]
    # x += Δt v after v += Δt g: semi-implicit Euler sums k (k + 1)/2 of them
    fall = k * 5e-4 * np.array([0.1, 0.0, 0.3]) + k * (k + 1) / 2 * 5e-4**2 * np.array([0.0, 0.0, -9.81])
    np.testing.assert_allclose(states["x"][:, 0], x + fall, atol=1e-13)
    assert np.all(wrench == 0.0)


def test_momentum_is_kept_in_free_flight(rng):
    x = box_lattice((0.04, 0.04, 0.06), (0.07, 0.07, 0.09), CELL / 2) + rng.uniform(-1e-3, 1e-3, (216, 3))
    program = ParticleProgram(
        Domain.around((0, 0, 0), (0.12, 0.12, 0.15), CELL),
        Liquid(1000.0, 4e4, 0.3),
        volume=VOLUME,
        particles=len(x),
        step=5e-4,
        gravity=(0.0, 0.0, 0.0),
    )
    start = program.start(x, rng.normal(size=x.shape) * 0.3)
    start["volume_ratio"] -= 0.03 * rng.uniform(size=(1, len(x)))
    states, _ = roll(program, start)
    linear, angular = momentum(states, 1000.0 * VOLUME)
    assert np.ptp(states["v"][:, 0], axis=0).max() > 0.1
    assert np.abs(linear - linear[0]).max() < 1e-13 * 1000.0 * VOLUME * len(x)
    assert np.abs(angular - angular[0]).max() < 1e-14 * 1000.0 * VOLUME * len(x)


def shaken_cup(thickness: float, steps: int, *, substeps: int = 1, turning: float = 3.0):
    """A closed cup that is shaken and rotated to and fro: program, start, inputs, and (place, angle) by step."""
    shapes, poses = box_cup(0.04, 0.05, thickness * CELL, lid=True, stick=0.2)
    shapes = [WallShape(s.kind, s.size, body=i % 2, stick=s.stick) for i, s in enumerate(shapes)]
    step = 4e-4
    h = step * substeps
    place, angle = np.array([0.013, 0.017, 0.011]), 0.1
    x = box_lattice((-0.02, -0.02, 0.0), (0.02, 0.02, 0.03), CELL / 2) @ rotation_matrix(about_y(angle)).T + place
    inputs = {
        "wall_position": np.zeros((steps, 1, 6, 3)),
        "wall_rotation": np.zeros((steps, 1, 6, 4)),
        "wall_twist": np.zeros((steps, 1, 6, 6)),
    }
    frames = []
    first = placed(poses, place, about_y(angle))
    for k in range(steps):
        now = placed(poses, place, about_y(angle))
        inputs["wall_position"][k, 0], inputs["wall_rotation"][k, 0] = now[:, :3], now[:, 3:]
        spin = turning * np.cos(40.0 * k * h)
        velocity = np.array([0.5, 0.2, 0.3]) * np.cos(25.0 * k * h)
        omega = np.array([0.0, spin, 0.0])
        inputs["wall_twist"][k, 0, :, :3] = omega
        inputs["wall_twist"][k, 0, :, 3:] = velocity + np.cross(omega, now[:, :3] - place)
        frames.append((place, angle))
        place, angle = place + h * velocity, angle + h * spin
    frames.append((place, angle))
    program = ParticleProgram(
        Domain.around((-0.12, -0.12, -0.12), (0.17, 0.16, 0.18), CELL),
        Liquid(1000.0, 6e4, 0.05),
        shapes,
        volume=VOLUME,
        particles=len(x),
        step=step,
        substeps=substeps,
    )
    return program, program.start(x, walls=first), inputs, frames


def depth_in_walls(x: np.ndarray, frames) -> float:
    """How far (m) any particle is outside the cup's inner faces."""
    deepest = -np.inf
    for at, (place, angle) in zip(x, frames, strict=True):
        local = (at - place) @ rotation_matrix(about_y(angle))
        faces = np.concatenate([np.abs(local[:, :2]) - 0.02, -local[:, 2:], local[:, 2:] - 0.05], axis=1)
        deepest = max(deepest, faces.max())
    return deepest


@pytest.mark.parametrize("substeps", [1, 2])
def test_the_wrench_is_the_balance_of_momentum(substeps):
    steps = 120 // substeps
    program, start, inputs, _ = shaken_cup(1.0, steps, substeps=substeps)
    states, wrench = roll(program, start, inputs, steps)
    mass, h = 1000.0 * VOLUME, 4e-4 * substeps
    linear, angular = momentum(states, mass)
    weight = mass * program.particles * np.array([0.0, 0.0, -9.81])
    force = -(np.diff(linear, axis=0) / h - weight)
    given = wrench[:, 0].sum(1)
    assert np.abs(wrench[:, 0]).max(axis=0).min() > 1e-4  # both bodies, all six components
    assert np.abs(given[:, 3:] - force).max() < 1e-10 * np.abs(force).max()
    if substeps > 1:
        return
    # gravity acts on nodes, whose first moment is that of the particles at the step's start
    torque = -(np.diff(angular, axis=0) / h - np.cross(states["x"][:-1, 0].sum(1) * mass, [0.0, 0.0, -9.81]))
    assert np.abs(given[:, :3] - torque).max() < 1e-10 * np.abs(torque).max()


@pytest.mark.parametrize("thickness", [0.25])
def test_a_shaken_cup_does_not_leak(thickness):
    check_leak(thickness, 400)


@pytest.mark.long
@pytest.mark.parametrize("thickness", [2.0, 1.0, 0.5, 0.25])
@pytest.mark.parametrize("turning", [0.0, 3.0, 8.0])
def test_a_cup_shaken_for_long_does_not_leak(thickness, turning):
    check_leak(thickness, 2500, turning)


def check_leak(thickness: float, steps: int, turning: float = 3.0) -> None:
    program, start, inputs, frames = shaken_cup(thickness, steps, turning=turning)
    states, _ = roll(program, start, inputs, steps, keep_every=10)
    assert depth_in_walls(states["x"][:, 0], frames[::10]) < 0.25 * thickness * CELL  # not even to mid-thickness


@pytest.mark.parametrize(
    "shape, place",
    [
        (WallShape("sphere", (0.05,)), (0.0, 0.0, -0.05)),
        (WallShape("capsule", (0.05, 0.02)), (0.0, 0.0, -0.07)),
        (WallShape("cylinder", (0.06, 0.02)), (0.0, 0.0, -0.02)),
        (WallShape("plane"), (0.0, 0.0, 0.0)),
    ],
)
def test_liquid_falls_on_a_shape_and_not_into_it(shape, place):
    x = box_lattice((-0.01, -0.01, 0.005), (0.01, 0.01, 0.025), CELL / 2)
    program = ParticleProgram(
        Domain.around((-0.15, -0.15, -0.15), (0.15, 0.15, 0.1), CELL),
        Liquid(1000.0, 4e4, 0.1),
        [shape],
        volume=VOLUME,
        particles=len(x),
        step=5e-4,
    )
    pose = np.array([[*place, *UPRIGHT]])
    states, wrench = roll(program, program.start(x, walls=pose), program.standing(200, pose), 200)
    at = states["x"][:, 0] - place
    if shape.kind == "sphere":
        gap = np.linalg.norm(at, axis=-1) - 0.05
    elif shape.kind == "capsule":
        gap = np.linalg.norm(at - np.clip(at[..., 2:], -0.02, 0.02) * [0, 0, 1], axis=-1) - 0.05
    elif shape.kind == "cylinder":
        gap = np.maximum(np.linalg.norm(at[..., :2], axis=-1) - 0.06, np.abs(at[..., 2]) - 0.02)
    else:
        gap = at[..., 2]
    assert gap.min() > -1e-4 and gap.min() < 1e-3
    assert wrench[:, 0, 0, 5].min() < 0.0


def hydrostatics(offset: float, tilt: float, cells: int, seconds: float) -> tuple[float, float]:
    """(dp/dz over −ρg, level's error over the depth) of liquid at rest in a square cup as deep as it is wide.

    The slope is fitted to all particles from a cell above the lowest to a cell and a half below the highest, over the
    second half of the time; the level is twice the height of the center of mass above that of the exact body of liquid.
    """
    width, bulk = cells * CELL, 1e5
    shapes, poses = box_cup(width, 2 * width, 2 * CELL)
    rotation, place = about_y(np.deg2rad(tilt)), np.array([0.15, 0.15, 0.06]) + offset * CELL
    poses = placed(poses, place, rotation)
    x = box_lattice((-width / 2, -width / 2, 0), (width / 2, width / 2, width), CELL / 2)
    x = x @ rotation_matrix(rotation).T + place
    program = ParticleProgram(
        Domain.around((-0.05, -0.02, -0.03), (0.4, 0.32, 0.4), CELL),
        Liquid(1000.0, bulk, 0.05),
        shapes,
        volume=VOLUME,
        particles=len(x),
        step=5e-4,
    )
    steps = round(seconds / 5e-4)
    states, _ = roll(
        program, program.start(x, walls=poses), program.standing(steps, poses), steps, keep_every=steps // 20
    )
    late = {name: value[11:, 0] for name, value in states.items()}
    z, pressure = late["x"][..., 2].ravel(), bulk * (late["volume_ratio"].ravel() ** -7 - 1) / 7
    middle = (z > z.min() + CELL) & (z < z.max() - 1.5 * CELL)
    slope = np.polyfit(z[middle], pressure[middle], 1)[0]
    # the exact body: points of the cup's inside below a level that leaves as much volume
    sample = np.random.default_rng(0).uniform(
        (-width / 2, -width / 2, 0), (width / 2, width / 2, 2 * width), (200_000, 3)
    )
    heights = np.sort((sample @ rotation_matrix(rotation).T + place)[:, 2])
    exact = heights[: len(heights) // 2].mean()
    return slope / (-1000.0 * 9.81), 2.0 * (z.mean() - exact) / width


def test_pressure_grows_with_depth():
    slope, level = hydrostatics(0.3, 0.0, 4, 0.4)
    assert abs(slope - 1.0) < 0.1
    assert abs(level) < 0.03


def test_the_level_stays_where_the_grid_cuts_the_floor_between_nodes():
    _, level = hydrostatics(0.5, 0.0, 7, 0.9)  # −1.5 % where walls hold nodes over half a cell only
    assert abs(level) < 0.008


@pytest.mark.long
@pytest.mark.parametrize("offset", [0.0, 0.33, 0.5])
@pytest.mark.parametrize("tilt", [0.0, 17.0, 30.0])
@pytest.mark.parametrize("cells, slope_error, level_error", [(7, 0.03, 0.04), (10, 0.03, 0.02)])
def test_hydrostatics(offset, tilt, cells, slope_error, level_error):
    slope, level = hydrostatics(offset, tilt, cells, 1.5)
    print(f"offset {offset} tilt {tilt} cells {cells}: dp/dz {slope:.4f}, level {level:+.4f}")
    if cells == 10 and offset == 0.0:  # a known fault: the level sinks where the sides of a cup stand on nodes
        slope_error, level_error = 0.08, 0.05
    assert abs(slope - 1.0) < slope_error
    assert abs(level) < level_error
