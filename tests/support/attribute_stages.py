"""Stages that use every kind of attribute that can carry a gradient, in any units, and their derivatives through files.

All numbers are sums of few powers of two, so that they and their neighbors are exact in float32 in every unit used.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import torch
from pxr import Gf, Usd, UsdPhysics

import warpsim as ws
from warpsim.io.usd import author

SI = (1.0, 1.0, "Z")
CENTIMETERS = (0.01, 0.001, "Y")

_QUARTER_TURN_BACK = (np.sqrt(0.5), -np.sqrt(0.5), 0, 0)
# 0.5·(1, 1, 1, 1) and 0.25·(…) are unit quaternions that float32 holds exactly
_TILT = (0.5, 0.5, -0.5, 0.5)


def _world(length: float, mass: float, up: str) -> tuple[Usd.Stage, Usd.Prim, float, float]:
    stage = author.new_stage(meters_per_unit=length, kilograms_per_unit=mass, up_axis=up)
    turn = (1, 0, 0, 0) if up == "Z" else _QUARTER_TURN_BACK
    return stage, author.frame(author.world(stage), "Turned", rotation=turn), 1.0 / length, 1.0 / mass


def mechanism(length: float, mass: float, up: str) -> Usd.Stage:
    """A slide carries a driven, limited hinge in a medium; free bodies get their mass in every possible way."""
    stage, world, u, k = _world(length, mass, up)
    author.physics_scene(
        stage,
        gravity=8 * u,
        steps_per_second=512,
        attributes={
            "physics:gravityDirection": (0.25, -0.5, 0.75) if up == "Y" else (0.25, 0.5, -0.75),
            "mjc:option:density": 8.0 * k / u**3,
            "mjc:option:viscosity": 0.5 * k / u,
            "mjc:option:wind": (0.5 * u, 1.0 * u, 0.25 * u),
            "mjc:option:tolerance": 1e-15,
        },
    )
    _slide_and_hinge(world, u, k)
    free = author.body(
        world,
        "Authored",
        position=(4 * u, 0, 2 * u),
        rotation=_TILT,
        mass=2 * k,
        center_of_mass=(0.125 * u, 0.25 * u, 0),
        inertia=np.array([0.5, 0.75, 0.375]) * k * u * u,
        principal_axes=(0.5, 0.5, 0.5, -0.5),
        velocity=(0.5 * u, 1.0 * u, 0.25 * u),
        angular_velocity=(64, 96, -32),
    )
    author.sphere(free, "Ball", 0.25 * u)
    steel = author.material(author.world(stage), "Steel", density=256 * k / u**3)
    dense = author.body(world, "Dense", position=(8 * u, 0, 2 * u), angular_velocity=(96, 32, 64))
    UsdPhysics.MassAPI.Apply(dense).CreateDensityAttr(512 * k / u**3)
    author.box(dense, "ByBody", (0.25 * u, 0.125 * u, 0.0625 * u), position=(0.25 * u, 0, 0))
    author.cylinder(dense, "ByItself", 0.125 * u, 0.5 * u, position=(0, 0.25 * u, 0), density=128 * k / u**3)
    author.capsule(dense, "Weighed", 0.125 * u, 0.25 * u, position=(0, 0, 0.5 * u), rotation=_TILT, mass=4 * k)
    other = author.body(world, "Made", position=(12 * u, 0, 2 * u), angular_velocity=(96, 32, 64))
    author.box(other, "OfSteel", (0.5 * u, 0.25 * u, 0.125 * u), material=steel)
    author.cone(other, "Cone", 0.25 * u, 0.5 * u, position=(0.5 * u, 0, 0), material=steel)
    _snap(stage)
    return stage


def _slide_and_hinge(world: Usd.Prim, u: float, k: float) -> None:
    base = author.body(
        world, "Base", position=(0.5 * u, 0, 2 * u), mass=4 * k, inertia=np.array([0.5, 0.25, 0.375]) * k * u * u
    )
    author.set_attribute(base, "physics:centerOfMass", (0, 0, 0.25 * u))
    slide = author.prismatic(
        base,
        "Slide",
        None,
        base,
        "X",
        limits=(-2 * u, 0.0625 * u),
        drive={
            "stiffness": 64 * k,
            "damping": 8 * k,
            "target": 0.5 * u,
            "target_velocity": 0.25 * u,
            "max_force": 4 * k * u,
        },
        attributes={"state:linear:physics:position": 0.125 * u, "state:linear:physics:velocity": 0.25 * u},
    )
    arm = author.body(base, "Arm", position=(0, 0, 0.5 * u))
    author.capsule(arm, "Rod", 0.125 * u, 0.5 * u, axis="X", position=(0.25 * u, 0, 0))
    hinge = author.revolute(
        arm,
        "Hinge",
        base,
        arm,
        "Y",
        limits=(8, 128),
        drive={
            "stiffness": 2 * k * u * u,
            "damping": 0.5 * k * u * u,
            "target": 32,
            "target_velocity": 16,
            "max_force": 256 * k * u * u,
        },
        attributes={
            "newton:armature": 0.25 * k * u * u,
            "newton:damping": 0.125 * k * u * u,
            "newton:friction": 0.5 * k * u * u,
            "mjc:stiffness": 16 * k * u * u,
            "mjc:springref": 0.5,
            "state:angular:physics:position": 4.0,
            "state:angular:physics:velocity": 48.0,
        },
    )
    author.actuator(
        world,
        "Motor",
        hinge,
        gear=(1.5, 0, 0, 0, 0, 0),
        gain=(2 * k * u * u, 0.5 * k * u * u, 0.25 * k * u * u),
        bias=(0.5 * k * u * u, -0.25 * k * u * u, -0.125 * k * u * u),
    )
    author.actuator(world, "Pusher", slide, gain=(64 * k * u,), force_range=(-16 * k * u, 16 * k * u))


def contacts(length: float, mass: float, up: str) -> Usd.Stage:
    """Bodies press on and slide over a static box."""
    stage, world, u, k = _world(length, mass, up)
    author.physics_scene(stage, gravity=8 * u, steps_per_second=512, attributes={"mjc:option:tolerance": 1e-15})
    rubber = author.material(
        author.world(stage),
        "Rubber",
        friction=0.5,
        attributes={
            "newton:contactStiffness": 4096,
            "newton:contactDamping": 64,
            "newton:torsionalFriction": 0.125 * u,
        },
    )
    bouncy = author.material(author.world(stage), "Bouncy", friction=0.25, restitution=0.5)
    author.box(world, "Floor", (8 * u, 8 * u, 0.5 * u), position=(0, 0, -0.5 * u), material=rubber)
    ball = author.body(
        world,
        "Ball",
        position=(0, 0, 0.2421875 * u),
        mass=2 * k,
        velocity=(1 * u, 0.25 * u, -0.25 * u),
        angular_velocity=(0, 64, 128),
    )
    author.sphere(ball, "Shape", 0.25 * u, material=rubber, attributes={"newton:contactMargin": 0.0078125 * u})
    rod = author.body(world, "Rod", position=(2 * u, 0, 0.12109375 * u), mass=1 * k, velocity=(0.5 * u, 0.5 * u, 0))
    author.capsule(rod, "Shape", 0.125 * u, 0.5 * u, axis="X", material=rubber)
    jumper = author.body(
        world, "Jumper", position=(-2 * u, 0, 0.24609375 * u), mass=1 * k, velocity=(0.5 * u, 0, -1 * u)
    )
    author.sphere(jumper, "Shape", 0.25 * u, material=bouncy)
    author.box(world, "Ramp", (1 * u, 1 * u, 1 * u), position=(12 * u, 0, -1 * u), rotation=_TILT, material=rubber)
    roller = author.body(
        world, "Roller", position=(12 * u, 0, 0.24609375 * u), mass=1 * k, velocity=(0.5 * u, 1 * u, 0)
    )
    author.sphere(roller, "Shape", 0.25 * u, material=rubber)
    return stage


def meshes(length: float, mass: float, up: str, approximation: str = "convexHull", free: bool = True) -> Usd.Stage:
    """A ball slides over a mesh, which is free and has a density, or stands."""
    stage, world, u, k = _world(length, mass, up)
    author.physics_scene(stage, gravity=8 * u, steps_per_second=512, attributes={"mjc:option:tolerance": 1e-15})
    corners = 0.5 * u * np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([part for a, b, c, d in sides for part in ((a, b, c), (a, c, d))])
    rock = author.body(world, "Rock") if free else world
    author.mesh(
        rock,
        "Shape",
        corners,
        faces,
        approximation=approximation,
        position=(0, 0, -0.5 * u),
        scale=(1, 1, 1),
        density=64 * k / u**3 if free else None,
    )
    ball = author.body(
        world,
        "Ball",
        position=(0.0625 * u, 0.125 * u, 0.2421875 * u),
        mass=2 * k,
        velocity=(1 * u, 0.25 * u, -0.25 * u),
        angular_velocity=(0, 64, 128),
    )
    author.sphere(ball, "Shape", 0.25 * u)
    return stage


def _snap(stage: Usd.Stage) -> None:
    """Rounds joint frames, which the author computed, to numbers whose neighbors float32 holds."""
    for prim in stage.Traverse():
        for name in ("physics:localPos0", "physics:localPos1"):
            if prim.GetAttribute(name).HasAuthoredValue():
                position = np.array(prim.GetAttribute(name).Get(), dtype=np.float64)
                prim.GetAttribute(name).Set(Gf.Vec3f(*(np.round(64.0 * position) / 64.0).tolist()))


def loss_of(sim: ws.Simulator, steps: int, parameters: dict | None = None) -> torch.Tensor:
    """A fixed smooth number of where a rollout with constant controls ends."""
    generator = np.random.default_rng(3)
    controls = torch.full((steps, 1, sim.model.nu), 0.75, dtype=torch.float64) if sim.model.nu else None
    made = sim.rollout(steps, controls=None if controls is None else {"actuator": controls}, parameters=parameters)
    total = torch.zeros((), dtype=torch.float64)
    for name in ("q", "qd", "body_position"):
        last = made[name][-1]
        total = total + (torch.as_tensor(generator.normal(size=last.shape)) * last).sum()
    return total


def derivative_through_files(stage: Usd.Stage, path: str, direction: np.ndarray, folder: Path, steps: int) -> float:
    """d loss / d t of value + t·direction: edited, saved, loaded and simulated at four values (error of fourth order).

    Args:
        stage: Left as it was.
        path: "/prim.attribute".
        direction: Of the value's shape; value ± direction and ± 2·direction must be exact in the attribute's type.
        folder: For the files.
        steps: Of the rollout.
    """
    attribute = stage.GetAttributeAtPath(path)
    value = attribute.Get()
    numbers = _numbers(value)
    losses = {}
    for t in (-2.0, -1.0, 1.0, 2.0):
        attribute.Set(_like(value, numbers + t * direction))
        stored = _numbers(attribute.Get())
        np.testing.assert_array_equal(stored - numbers, t * direction)
        file = folder / f"moved{t:g}.usda"
        stage.GetRootLayer().Export(str(file))
        losses[t] = float(loss_of(ws.Simulator(file), steps))
    attribute.Set(value)
    return (8.0 * (losses[1.0] - losses[-1.0]) - (losses[2.0] - losses[-2.0])) / 12.0


def _numbers(value) -> np.ndarray:
    if isinstance(value, Gf.Quatf | Gf.Quatd):
        return np.array([value.GetReal(), *value.GetImaginary()])
    return np.array(value, dtype=np.float64)


def _like(value, numbers: np.ndarray):
    if np.ndim(numbers) == 0:
        return float(numbers)
    if isinstance(value, Gf.Vec3f | Gf.Vec3d | Gf.Quatf | Gf.Quatd):
        return type(value)(*map(float, numbers))
    return type(value)([float(number) for number in numbers])
