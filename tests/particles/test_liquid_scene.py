"""Liquids in scenes: read from USD, coupled with bodies both ways, differentiated, drawn and written."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pxr import Sdf, Usd, UsdGeom, UsdPhysics

import warpsim as ws
from liquid_scenes import add_cup, arm_with_cup, floating_cup, unaligned
from page_support import unpacked
from warpsim.core.errors import WarpsimError
from warpsim.io.usd import author
from warpsim.tape import Memory

GRAVITY = 9.81


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    return arm_with_cup(tmp_path_factory.mktemp("liquid") / "arm.usda")


@pytest.fixture(scope="module")
def sim(arm):
    return ws.Simulator(unaligned(ws.read_usd(arm)))


def test_a_cup_is_filled_to_half_its_depth_and_read_without_anything_left_over(arm):
    scene = ws.read_usd(arm, strict=True)
    (coffee,) = scene.matters
    x = coffee.initial["x"]
    assert len(x) * coffee.data["volume"] == pytest.approx(0.03 * 0.03 * 0.02, rel=1e-6)
    middle = np.array([0.25, 0.0, 0.51])  # of the lower half of the cup
    assert np.abs(x.mean(0) - middle).max() < 1e-6
    assert (np.abs(x - middle) <= np.array([0.015, 0.015, 0.01]) - 0.0025 + 1e-6).all()
    assert coffee.data["walls"] == [f"/World/Hand/{n}" for n in ("Floor", "Left", "Right", "Front", "Back")]
    assert coffee.parameters["viscosity"] == pytest.approx(0.1)


def test_lengths_and_densities_are_read_in_the_stage_s_units():
    """The same liquid in meters and in centimeters and grams."""

    def read(length: float, mass: float):
        stage = author.new_stage()
        UsdGeom.SetStageMetersPerUnit(stage, length)
        UsdPhysics.SetStageKilogramsPerUnit(stage, mass)
        world = author.world(stage)
        author.physics_scene(stage, gravity=GRAVITY / length, steps_per_second=500)
        lower, upper = np.array([0.1, 0.2, 0.3]) / length, np.array([0.14, 0.24, 0.36]) / length
        water = author.liquid(
            world, "Water", inside=(lower, upper), pitch=0.01 / length, density=900.0 * length**3 / mass
        )
        count = len(water.GetAttribute("points").Get())
        water.GetAttribute("velocities").Set([(0.5 / length, 0, -0.2 / length)] * count)
        return ws.read_usd(stage).matters[0]

    meters, other = read(1.0, 1.0), read(0.01, 0.001)
    assert meters.initial["x"].min(0) == pytest.approx([0.105, 0.205, 0.305], abs=1e-6)
    np.testing.assert_allclose(meters.initial["v"], np.tile([0.5, 0.0, -0.2], (len(meters.initial["x"]), 1)), atol=1e-6)
    for name in ("x", "v"):
        np.testing.assert_allclose(other.initial[name], meters.initial[name], rtol=1e-6, atol=1e-7)
    assert float(other.parameters["density"]) == pytest.approx(900.0)
    assert other.data["volume"] == pytest.approx(1e-6)


def test_a_floating_cup_and_its_liquid_keep_their_momentum(tmp_path):
    sim = ws.Simulator(floating_cup(tmp_path / "cup.usda"))
    made = sim.rollout(60, outputs=("body_position", "body_rotation", "body_velocity"))
    liquid = sim.scene.matters[0]
    mass = float(liquid.parameters["density"]) * liquid.data["volume"]
    x, v, c = (made[f"water.{n}"][:, 0].numpy() for n in ("x", "v", "rate"))
    spin = (
        0.25
        * liquid.data["spacing"] ** 2
        * np.stack([c[..., 2, 1] - c[..., 1, 2], c[..., 0, 2] - c[..., 2, 0], c[..., 1, 0] - c[..., 0, 1]], -1)
    )
    own = mass * v.sum(1)
    turning = mass * (np.cross(x, v) + spin).sum(1)
    position, velocity = (made[f"body_{n}"][:, 0, 1].numpy() for n in ("position", "velocity"))
    quaternion = made["body_rotation"][:, 0, 1].numpy()
    cup, inertia = sim.parameter("body.mass")[0, 1].item(), np.array([2e-5, 3e-5, 4e-5])
    w, u = quaternion[:, :1], quaternion[:, 1:]

    def rotate(a, sign):
        t = 2.0 * np.cross(sign * u, a)
        return a + w * t + np.cross(sign * u, t)

    omega, linear = velocity[:, :3], velocity[:, 3:]
    angular = rotate(inertia * rotate(omega, -1.0), 1.0) + cup * np.cross(position, linear)
    pending = made["water.wrench"][:, 0, 1].numpy() * sim.timestep  # what the cup has yet to get
    momentum = cup * linear + own + pending[:, 3:]
    assert np.abs(pending).max() > 1e-5  # the liquid does push
    assert np.abs(momentum - momentum[0]).max() < 1e-12
    # the integrator turns bodies with a first-order error of its own; the liquid's share is exact
    change = np.diff(turning, axis=0) + np.diff(pending[:, :3], axis=0)
    got = made["water.wrench"][:-1, 0, 1, :3].numpy() * sim.timestep
    assert np.abs(change + got).max() < 1e-12 * 60
    assert np.abs(angular + turning + pending[:, :3] - (angular + turning)[0]).max() < 1e-3 * np.abs(angular[0]).max()


def test_the_hand_carries_the_weight_of_its_liquid(arm):
    sim = ws.Simulator(arm)
    made = sim.rollout(150)
    coffee = sim.scene.matters[0]
    weight = len(coffee.initial["x"]) * coffee.data["volume"] * 1000.0 * GRAVITY
    force = made["coffee.wrench"][100:, 0, 2, 5].mean().item()
    acceleration = made["coffee.v"].mean(2)[:, 0, 2].diff()[100:].mean().item() / sim.timestep
    assert force == pytest.approx(-weight * (1.0 + acceleration / GRAVITY), rel=2e-3)


def _loss(sim, weights, steps, given, **options):
    starts = {name: given[name] for name in ("coffee.x", "coffee.v") if name in given}
    parameters = {n: v for n, v in given.items() if n not in starts and n != "drive_target"}
    made = sim.rollout(steps, {"drive_target": given["drive_target"]}, parameters=parameters, start=starts, **options)
    return (made["coffee.x"][-1, 0] * weights).sum() + 3.0 * made["q"][-1].sum() + made["coffee.wrench"][-1, 0, 2].sum()


SCALES = {
    "drive_target": 1.0,
    "coffee.x": 0.005,
    "coffee.v": 0.1,
    "body.mass": None,
    "drive.stiffness": None,
    "coffee.density": None,
    "coffee.bulk_modulus": None,
    "coffee.stick": 1.0,
    "shape.size": None,
    "shape.position": 0.02,
}
"""Typical size of a change; None: that of the value."""


def _differences(sim, steps, names, sizes, **options):
    """Worst relative error of the adjoint along one random direction of each input, at the best of some step sizes."""
    gen = torch.Generator().manual_seed(0)
    weights = torch.randn(sim.scene.matters[0].initial["x"].shape, generator=gen, dtype=torch.float64)
    wave = torch.sin(torch.linspace(0.0, 3.0, steps, dtype=torch.float64))
    base = {"drive_target": 0.3 * (wave[:, None] * torch.tensor([1.0, -1.0])).reshape(steps, 1, 2)}
    base |= {n: torch.as_tensor(sim.scene.matters[0].initial[n[7:]])[None] for n in ("coffee.x", "coffee.v")}
    base |= {n: sim.parameter(n).clone() for n in SCALES if n not in base}
    base["coffee.stick"] = base["coffee.stick"] + 0.3
    # At rest, liquid beside a wall neither comes nor goes: a switch, where the two sides' derivatives differ.
    base["coffee.v"] = base["coffee.v"] + 1e-3 * torch.randn(base["coffee.v"].shape, generator=gen, dtype=torch.float64)
    leaves = {n: base[n].clone().requires_grad_() for n in names}
    _loss(sim, weights, steps, {**base, **leaves}, **options).backward()
    found = {}
    for name in names:
        scale = base[name].abs() if SCALES[name] is None else SCALES[name]
        move = torch.randn(base[name].shape, generator=gen, dtype=torch.float64) * scale
        slope, errors = (leaves[name].grad * move).sum().item(), []
        for size in sizes:
            with torch.no_grad():
                sides = [_loss(sim, weights, steps, {**base, name: base[name] + s * size * move}) for s in (1, -1)]
            measured = ((sides[0] - sides[1]) / (2 * size)).item()
            errors.append(abs(slope - measured) / max(abs(slope), abs(measured)))
        found[name] = min(errors)
    return found


def test_gradients_cross_from_liquid_to_robot_and_back(sim):
    found = _differences(sim, 12, [n for n in SCALES if n != "shape.position"], (1e-4, 1e-5, 1e-6), memory="64MB")
    assert max(found.values()) < 1e-6, found


@pytest.mark.long
def test_gradients_through_five_hundred_steps(sim):
    names = ["drive_target", "coffee.x", "body.mass", "drive.stiffness", "coffee.density", "shape.size"]
    found = _differences(sim, 500, names, (1e-6, 3e-7, 1e-7), memory="64MB")
    assert max(found.values()) < 1e-6, found


def test_same_bits_for_every_schedule_and_in_every_world(sim, arm):
    def run(simulator, **options):
        target = torch.full((8, simulator.worlds, 2), 0.2, dtype=torch.float64, requires_grad=True)
        made = simulator.rollout(8, {"drive_target": target}, **options)
        (made["coffee.x"][-1].sum() + made["q"][-1].sum()).backward()
        return made["coffee.x"][-1].detach(), target.grad

    full = run(sim)
    for other in (run(sim, memory=Memory(segment=3)), run(sim, memory=Memory(segment=1))):
        assert torch.equal(full[0], other[0]) and torch.equal(full[1], other[1])
    plain = ws.Simulator(arm)
    one, two = run(plain), run(plain.with_worlds(2), memory=Memory(segment=4))
    for world in range(2):
        assert torch.equal(one[0][0], two[0][world]) and torch.equal(one[1][:, 0], two[1][:, world])


def test_a_rollout_is_written_as_points_over_time_and_drawn(arm, tmp_path):
    sim = ws.Simulator(arm)
    made = sim.rollout(5, outputs=("body_position", "body_rotation", "body_velocity"))
    made.save(tmp_path / "moved.usda")
    stage = Usd.Stage.Open(str(tmp_path / "moved.usda"))
    points = UsdGeom.Points(stage.GetPrimAtPath("/World/Coffee")).GetPointsAttr()
    times = points.GetTimeSamples()
    assert len(times) == 6
    assert np.abs(np.array(points.Get(times[-1])) - made["coffee.x"][-1, 0].numpy()).max() < 1e-6
    again = ws.Simulator(tmp_path / "moved.usda")
    assert torch.equal(again.rollout(5)["coffee.x"], made["coffee.x"])
    made.save(tmp_path / "page.html")
    assert "/World/Coffee" in str(unpacked((tmp_path / "page.html").read_text()))


def test_a_liquid_without_moving_bodies(tmp_path):
    stage = author.new_stage()
    author.physics_scene(stage, steps_per_second=500)
    world = author.world(stage)
    cup = author.frame(world, "Cup", position=(0.1, 0.2, 0.3))
    add_cup(cup, 0.03, 0.03, 0.005)
    author.liquid(world, "Water", inside=cup, pitch=0.005)
    author.save(stage, tmp_path / "still.usda")
    made = ws.Simulator(tmp_path / "still.usda").rollout(100)
    weight = made["water.x"].shape[2] * 0.005**3 * 1000.0 * GRAVITY
    assert made["water.wrench"][40:, 0, 0, 5].mean().item() == pytest.approx(-weight, rel=0.05)
    assert (made["water.x"][-1, 0, :, 2] > 0.3 - 1e-4).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda prim: prim.GetAttribute("points").Set([(5, 0, 0)]), "outside the domain"),
        (lambda prim: prim.GetAttribute("points").Set([]), "no points"),
        (lambda prim: prim.GetAttribute("widths").Set([0.02]), "particles"),
        (lambda prim: prim.GetAttribute("widths").Set([0.005, 0.006]), "one width"),
        (lambda prim: _set(prim, "substeps", 1), "too long"),
        (lambda prim: _set(prim, "maxNodes", 20), "nodes"),
    ],
)
def test_bad_liquids_are_refused(arm, tmp_path, change, words):
    stage = Usd.Stage.Open(Sdf.Layer.FindOrOpen(str(arm)).identifier, Usd.Stage.LoadAll)
    copy = tmp_path / "bad.usda"
    stage.GetRootLayer().Export(str(copy))
    stage = Usd.Stage.Open(str(copy))
    prim = stage.GetPrimAtPath("/World/Coffee")
    prim.CreateAttribute("warpsim:particles:domain", Sdf.ValueTypeNames.DoubleArray).Set([0, -0.2, 0.3, 0.5, 0.2, 0.8])
    prim.CreateAttribute("warpsim:particles:spacing", Sdf.ValueTypeNames.Double).Set(0.01)
    change(prim)
    stage.GetRootLayer().Save()
    with pytest.raises(WarpsimError, match=words):
        ws.Simulator(copy).rollout(2)


def _set(prim, name, value):
    prim.CreateAttribute(f"warpsim:particles:{name}", Sdf.ValueTypeNames.Int).Set(value)


def test_points_are_read_where_their_prim_stands(arm, tmp_path):
    """A prim that is moved moves its particles, by as much and the same way."""
    stage = Usd.Stage.Open(str(arm))
    (before,) = ws.read_usd(stage).matters
    prim = stage.GetPrimAtPath(before.path)
    points = UsdGeom.Points(prim).GetPointsAttr()
    shift = np.array([0.0, 0.0, 0.002])
    UsdGeom.Xformable(prim).AddTranslateOp(opSuffix="raised").Set(tuple(shift))
    (after,) = ws.read_usd(stage).matters
    assert len(points.Get()) == len(before.initial["x"])
    np.testing.assert_allclose(after.initial["x"] - before.initial["x"], np.broadcast_to(shift, (len(points.Get()), 3)))
