"""Deformables in scenes: gradients through everything they meet, schedules, attributes, results, units, bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pxr import Gf, Usd, UsdGeom, Vt

import warpsim as ws
from cloth_scenes import directional, everything, new_world, parameters, random_direction
from warpsim.io.usd import author
from warpsim.tape.memory import Memory

STEPS = 16
PARAMETERS = (
    *("cloth.young", "cloth.young_scale", "cloth.poisson", "cloth.thickness", "cloth.density", "cloth.damping"),
    *("cloth.bending", "cloth.rest", "cloth.gap", "cloth.friction", "cloth.contact_stiffness"),
    *("cloth.contact_damping", "cloth.pin_anchor", "cloth.attachment_anchor", "cloth.attachment_stiffness"),
    *("body.inertia", "body.com", "shape.size", "shape.position", "world.timestep", "world.gravity"),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return everything(tmp_path_factory.mktemp("cloth") / "scene.usda")


@pytest.fixture(scope="module")
def sim(path: Path) -> ws.Simulator:
    return ws.Simulator(path, worlds=2)


@pytest.fixture(scope="module")
def given(sim: ws.Simulator) -> dict[str, torch.Tensor]:
    rng, points = np.random.default_rng(0), 25
    return {
        **parameters(sim, PARAMETERS),
        "x": torch.as_tensor(sim.scene.matters[0].initial["x"]),
        "v": torch.as_tensor(0.2 * rng.normal(size=(points, 3))),
        "pin": torch.as_tensor(4e-3 * np.cumsum(rng.normal(size=(STEPS, 2, 1, 3)), axis=0)),
        "force": torch.as_tensor(2e-3 * rng.normal(size=(STEPS, 2, points, 3))),
        "drive": torch.as_tensor(0.3 * rng.normal(size=(STEPS, 2, 1))),
    }


def loss(sim: ws.Simulator, given: dict[str, torch.Tensor], **options) -> torch.Tensor:
    """A form of where cloth, arm and ball come to, and of contact forces on the way."""
    made = sim.rollout(
        STEPS,
        {"cloth.pin": given["pin"], "cloth.force": given["force"], "drive_target": given["drive"]},
        start={"cloth.x": given["x"], "cloth.v": given["v"]},
        parameters={name: given[name] for name in PARAMETERS},
        outputs=("cloth.center", "cloth.contact_force"),
        **options,
    )
    weights = torch.as_tensor(np.random.default_rng(1).normal(size=(25, 3)))
    motion = (made["cloth.x"][[STEPS // 2, -1]] * weights).sum() + 0.1 * made["cloth.v"][-1].sum()
    return motion + 0.1 * made["cloth.center"].sum() + 3.0 * made.q[-1].sum() + 0.05 * made["cloth.contact_force"].sum()


def gradients(sim: ws.Simulator, given: dict[str, torch.Tensor], **options) -> dict[str, torch.Tensor]:
    leaves = {name: value.clone().requires_grad_() for name, value in given.items()}
    return dict(zip(leaves, torch.autograd.grad(loss(sim, leaves, **options), list(leaves.values())), strict=True))


@pytest.fixture(scope="module")
def found(sim: ws.Simulator, given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return gradients(sim, given)


def test_ball_and_arm_meet_the_cloth(sim: ws.Simulator, given: dict[str, torch.Tensor]) -> None:
    """So that what follows is about contact, attachments and pins at all."""
    made = sim.rollout(STEPS, {"cloth.pin": given["pin"]}, outputs=("cloth.contact_force", "cloth.solver_status"))
    assert float(made["cloth.contact_force"][-1].norm(dim=-1).sum()) > 1.0
    assert int(made["cloth.solver_status"].abs().max()) == 0
    free = sim.rollout(STEPS, parameters={"cloth.attachment_stiffness": torch.tensor([1.0])})
    assert float((made.q[-1] - free.q[-1]).abs().max()) > 1e-4


@pytest.mark.parametrize("name", [*PARAMETERS, "x", "v", "pin", "force", "drive"])
def test_gradients_agree_with_differences(sim, given, found, name: str) -> None:
    """Across the joint between robot and cloth, in contact with a body that moves."""
    direction = random_direction(given[name], np.random.default_rng(2))
    if name == "shape.size":
        direction *= given[name] > 0
    if name.startswith("body."):
        direction = 0.1 * given[name] * torch.as_tensor(np.random.default_rng(2).random(given[name].shape))
    steps = {"cloth.thickness": 1e-6, "cloth.bending": 1e-3, "world.timestep": 1e-6, "body.com": 1e-2}
    steps |= {"cloth.contact_damping": 1e-3, "body.inertia": 1e-3}  # their effect is small against rounding
    step = steps.get(name, 1e-5)
    expected, error = directional(lambda values: loss(sim, values), given, name, direction, step)
    assert error < 1e-5 * abs(expected)
    assert float((found[name] * direction).sum()) == pytest.approx(expected, rel=1e-6)


def test_same_bits_for_all_schedules_and_threads(sim, given, found) -> None:
    for options in ({"memory": Memory(segment=1)}, {"memory": Memory(segment=5)}, {"threads": 2}):
        for name, gradient in gradients(sim, given, **options).items():
            assert torch.equal(gradient, found[name]), (options, name)


def test_steps_and_rollouts_agree(sim: ws.Simulator, given: dict[str, torch.Tensor]) -> None:
    controls = {"cloth.pin": given["pin"], "drive_target": given["drive"]}
    made = sim.rollout(4, {name: value[:4] for name, value in controls.items()})
    sim.reset()
    for k in range(4):
        state = sim.step({name: value[k] for name, value in controls.items()})
    for name in ("q", "qd", "cloth.x", "cloth.v"):
        assert torch.equal(state[name], made[name][-1]), name


def test_gradcheck_passes(path: Path) -> None:
    report = ws.Simulator(path).gradcheck(steps=5, parameters=("cloth.young", "cloth.friction", "cloth.pin_anchor"))
    assert report.ok, str(report)


def test_attributes_reach_it(path: Path, sim: ws.Simulator) -> None:
    handle = sim.attribute("/World/Cloth/Material.physics:youngsModulus")
    assert handle.reach == ("cloth.young",)
    value = handle.value.requires_grad_()
    by_attribute = torch.autograd.grad(sim.rollout(8, parameters={handle: value})["cloth.x"][-1].sum(), value)[0]
    array = sim.parameter("cloth.young")[0].clone().requires_grad_()
    by_array = torch.autograd.grad(sim.rollout(8, parameters={"cloth.young": array})["cloth.x"][-1].sum(), array)[0]
    assert float(by_attribute) == pytest.approx(float(by_array), rel=1e-10)
    assert set(sim.attribute("/World/Cloth/Material.physics:thickness").reach) == {"cloth.thickness", "cloth.gap"}


def test_result_loads_again(sim: ws.Simulator, tmp_path: Path) -> None:
    made = sim.rollout(6)
    target = tmp_path / "result.usda"
    made.save(target)
    stage = Usd.Stage.Open(str(target))
    points = UsdGeom.Mesh(stage.GetPrimAtPath("/World/Cloth")).GetPointsAttr()
    assert points.GetNumTimeSamples() == 7
    last = np.array(points.Get(points.GetTimeSamples()[-1])) + [0, 0, 0.6]
    np.testing.assert_allclose(last, made["cloth.x"][-1, 0].numpy(), atol=1e-6)
    again = ws.Simulator(target)
    np.testing.assert_array_equal(again.scene.matters[0].initial["x"], made["cloth.x"][0, 0].numpy())
    page = made.page(worlds=[1])
    assert [getattr(drawable, "path", "") for drawable in page.drawables].count("/World/Cloth") == 1
    np.testing.assert_array_equal(page.takes[0].points["/World/Cloth"], made["cloth.x"][:, 1].numpy())


def hanging(path: Path, unit: float = 1.0, up: str = "Z") -> Path:
    """A strip that hangs from two points, written in other units and axes."""
    stage, world = new_world(up_axis=up, meters_per_unit=unit, kilograms_per_unit=0.1)
    turned = {"Z": (1, 0, 0, 0), "Y": (np.sqrt(0.5), -np.sqrt(0.5), 0, 0)}[up]
    height = np.array([0, 0, 0.5] if up == "Z" else [0, 0.5, 0]) / unit
    cloth = author.cloth(
        world,
        "Strip",
        (0.3 / unit, 0.1 / unit),
        (3, 1),
        position=height,
        rotation=turned,
        young=5e4 * unit / 0.1,
        thickness=1e-3 / unit,
        density=400 * unit**3 / 0.1,
        damping=0.01,
        velocity=np.array([0.3, 0.0, 0.0]) / unit,
    )
    author.attach(cloth, "Hold", [0, 1])
    author.save(stage, path)
    return path


def test_units_and_axes_do_not_matter(tmp_path: Path) -> None:
    made = [
        ws.Simulator(hanging(tmp_path / f"{k}.usda", unit, up)).rollout(20)["strip.x"][-1, 0].numpy()
        for k, (unit, up) in enumerate([(1.0, "Z"), (0.01, "Z"), (0.001, "Y")])
    ]
    np.testing.assert_allclose(made[1], made[0], atol=2e-6)  # points are float32 on a stage
    np.testing.assert_allclose(made[2], made[0], atol=2e-6)


def test_ball_bounces_and_momentum_stays(tmp_path: Path) -> None:
    """A body thrown at a free soft block in space: all momentum stays between them."""
    stage = author.new_stage()
    author.physics_scene(stage, steps_per_second=400, gravity=0.0)
    world = author.world(stage)
    ball = author.body(world, "Ball", position=(-0.15, 0.01, 0.02), velocity=(1.0, 0, 0))
    author.sphere(ball, "Ball", 0.05, density=600)
    author.soft(world, "Block", box=(0.1, 0.1, 0.1), cells=2, young=2e4, density=500, friction=0.3)
    author.save(stage, tmp_path / "bounce.usda")
    sim = ws.Simulator(tmp_path / "bounce.usda")
    made = sim.rollout(120, outputs=("block.contact_force", "body_position"))
    assert float(made["block.contact_force"].abs().max()) > 1.0
    mass = 600 * 4 / 3 * np.pi * 0.05**3
    own = 500 * 0.1**3
    # lumped masses of tetrahedra: by their share of the volume
    data, rest = sim.scene.matters[0].data, sim.scene.matters[0].initial["x"]
    volumes = np.linalg.det(rest[data["elements"][:, 1:]] - rest[data["elements"][:, :1]]) / 6.0
    lumped = np.zeros(len(rest))
    np.add.at(lumped, data["elements"].ravel(), np.repeat(500 * volumes / 4, 4))
    assert lumped.sum() == pytest.approx(own, rel=1e-6)
    momentum = mass * made.qd[:, 0, :3].numpy() + np.einsum("i,tij->tj", lumped, made["block.v"][:, 0].numpy())
    np.testing.assert_allclose(momentum - momentum[0], np.zeros_like(momentum), atol=1e-12)
    assert float(made.qd[-1, 0, 0]) < 0.9  # it was slowed
    assert float(made["block.v"][-1, 0, :, 0].mean()) > 0.05


@pytest.mark.parametrize("density", [2000.0, 20.0])
def test_body_rests_on_a_soft_block(density: float, tmp_path: Path) -> None:
    """Contact forces are weights, however light the body is: stiff contacts do not throw it."""
    stage, world = new_world(rate=200)
    author.ground(world)
    author.soft(
        world,
        "Block",
        box=(0.2, 0.2, 0.1),
        cells=(4, 4, 2),
        position=(0, 0, 0.05),
        young=3e4,
        density=300,
        damping=0.02,
        mass_damping=4.0,
    )
    body = author.body(world, "Body", position=(0, 0, 0.131))
    author.box(body, "Box", (0.06, 0.06, 0.03), density=density)
    author.save(stage, tmp_path / "rest.usda")
    made = ws.Simulator(tmp_path / "rest.usda").rollout(500, outputs=("block.contact_force", "block.solver_status"))
    vertical = made["block.contact_force"][-1, 0, :, 2]
    assert int(made["block.solver_status"].abs().max()) == 0
    weight, own = 9.81 * density * 0.12 * 0.12 * 0.06, 9.81 * 300 * 0.2 * 0.2 * 0.1
    assert float(vertical[vertical < 0].sum()) == pytest.approx(-weight, rel=1e-2)
    assert float(vertical.sum()) == pytest.approx(own, rel=1e-3)
    assert abs(float(made.q[-1, 0, 2]) - 0.13) < 0.01


def _flip(attribute: Usd.Attribute, element: int) -> None:
    """Turns one tetrahedron inside out."""
    tetrahedra = [Gf.Vec4i(*tet) for tet in attribute.Get()]
    a, b, c, d = tetrahedra[element]
    tetrahedra[element] = Gf.Vec4i(b, a, c, d)
    attribute.Set(tetrahedra)


BAD = {
    "inverted": (lambda p: _flip(p.GetAttribute("tetVertexIndices"), 3), "element 3 .* inside out"),
    "no points": (lambda p: p.GetAttribute("points").Clear(), "needs points"),
    "too far": (lambda p: p.GetAttribute("tetVertexIndices").Set([Gf.Vec4i(0, 1, 2, 99)]), "go to 99"),
    "flat": (lambda p: p.GetAttribute("points").Set(Vt.Vec3fArray(27, Gf.Vec3f(0, 0, 0))), "element 0 .* no extent"),
    "young": (lambda p: p.GetChild("Material").GetAttribute("physics:youngsModulus").Set(-1.0), "youngsModulus"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str, tmp_path: Path) -> None:
    stage, world = new_world()
    soft = author.soft(world, "Jelly", box=(0.1, 0.1, 0.1), cells=2, young=1e4)
    spoil, message = BAD[name]
    spoil(soft)
    author.save(stage, tmp_path / "bad.usda")
    with pytest.raises(ws.SceneError, match=f"(?s)/World/Jelly.*{message}|{message}.*/World/Jelly"):
        ws.load_scene(tmp_path / "bad.usda")


def _stray(prim: Usd.Prim) -> None:
    """Adds a point that no face has."""
    attribute = prim.GetAttribute("points")
    attribute.Set(Vt.Vec3fArray([*attribute.Get(), Gf.Vec3f(1, 1, 1)]))


def _number(name: str, value: float) -> Callable[[Usd.Prim], None]:
    return lambda prim: prim.GetChild("Material").GetAttribute(f"physics:{name}").Set(value)


BAD_CLOTH = {
    "stray point": (_stray, "point 9 belongs to no element"),
    "not a number": (lambda p: p.GetAttribute("points").Set(Vt.Vec3fArray(9, Gf.Vec3f(np.nan, 0, 0))), "points"),
    "no thickness": (_number("thickness", 0.0), "thickness.*must be above 0"),
    "thickness in millimeters": (_number("thickness", 2.0), "a thickness of 2 m, and it is 0.283 m long; .*units"),
    "density in grams": (_number("density", 3e5), "3e\\+05 kg/m³ .*units"),
    "stiffness": (_number("youngsModulus", 1e15), "1e\\+15 Pa .*units"),
    "degenerate": (
        lambda p: p.GetAttribute("faceVertexIndices").Set(Vt.IntArray([0, 3, 3] + [0, 4, 1] * 7)),
        "element 0 .* no extent|share the edge",
    ),
}


@pytest.mark.parametrize("name", BAD_CLOTH)
def test_bad_cloth_is_named(name: str, tmp_path: Path) -> None:
    stage, world = new_world()
    given = {"young": 1e4, "thickness": 1e-3, "density": 300.0}
    cloth = author.cloth(world, "Towel", (0.2, 0.2), (2, 2), position=(0, 0, 1), **given)
    spoil, message = BAD_CLOTH[name]
    spoil(cloth)
    author.save(stage, tmp_path / "bad.usda")
    with pytest.raises(ws.SceneError, match=f"(?s)/World/Towel.*({message})|({message}).*/World/Towel"):
        ws.load_scene(tmp_path / "bad.usda")


def test_surfaces_with_three_sheets_at_an_edge_are_refused(tmp_path: Path) -> None:
    stage, world = new_world()
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]], float)
    author.cloth(world, "Fan", (1, 1), (1, 1), points=points, triangles=np.array([[0, 1, 2], [0, 3, 1], [0, 1, 4]]))
    author.save(stage, tmp_path / "fan.usda")
    with pytest.raises(ws.SceneError, match=r"/World/Fan: triangles \[0, 1, 2\] share the edge \(0, 1\)"):
        ws.load_scene(tmp_path / "fan.usda")


def test_cable_hangs_in_a_catenary(tmp_path: Path) -> None:
    """A cable between two points, settled: a catenary of its length, to the width of its segments."""
    stage, world = new_world(rate=50)
    count, span, length = 41, 1.0, 1.25
    along = np.linspace(0, span, count)
    rise = 0.5 * np.sqrt((length / (count - 1)) ** 2 - (span / (count - 1)) ** 2) * (np.arange(count) % 2)
    points = np.stack([along, 2 * rise, np.full(count, 1.0)], axis=1)
    cable = author.cable(
        world, "Cable", points, thickness=4e-3, young=2e8, density=1500, bending=1e-6, mass_damping=8.0, collides=False
    )
    author.attach(cable, "Ends", [0, count - 1])
    author.save(stage, tmp_path / "cable.usda")
    sim = ws.Simulator(tmp_path / "cable.usda")
    x = sim.rollout(400)["cable.x"][-1, 0].numpy()
    length = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    a = 0.1
    for _ in range(200):  # 2a sinh(span / 2a) = length
        f = 2 * a * np.sinh(span / (2 * a)) - length
        slope = 2 * np.sinh(span / (2 * a)) - span / a * np.cosh(span / (2 * a))
        a -= f / slope
    expected = 1.0 + a * (np.cosh((x[:, 0] - span / 2) / a) - np.cosh(span / (2 * a)))
    np.testing.assert_allclose(x[:, 2], expected, atol=3e-3)


def test_attachments_beyond_the_points_are_named(tmp_path: Path) -> None:
    stage, world = new_world()
    cloth = author.cloth(world, "Cloth", (0.2, 0.2), (2, 2))
    author.attach(cloth, "Far", [0, 9])
    author.save(stage, tmp_path / "far.usda")
    with pytest.raises(ws.SceneError, match=r"/World/Far: physics:indices0 holds 9; there are 9 points"):
        ws.load_scene(tmp_path / "far.usda")
