"""Variables: x ↔ values within bounds, groups, components, worlds, and the way back into a file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pxr import Usd, UsdPhysics

import warpsim as ws
from warpsim.io.usd import author
from warpsim.io.usd.writer import write_result
from warpsim.optimizers.variables import Variable, Variables


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("variables") / "scene.usda"
    stage = author.new_stage()
    for i in range(2):
        body = author.body(
            author.world(stage),
            f"Ball{i}",
            position=(i, 0, 1),
            mass=0.5 + i,
            velocity=(1 + i, 2, 3),
            rotation=(1, 0, 0, 0),
        )
        author.sphere(body, "Shape", 0.1)
    assert UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath("/World/Ball0"))
    stage.GetRootLayer().Export(str(path))
    return path


@pytest.fixture(scope="module")
def sim(file):
    return ws.Simulator(file)


@pytest.fixture(scope="module")
def mass(sim):
    return sim.attribute("/World/Ball0.physics:mass")


@pytest.fixture(scope="module")
def velocity(sim):
    return sim.attribute("/World/Ball0.physics:velocity")


@pytest.mark.parametrize(
    "options, low, high",
    [
        ({}, -np.inf, np.inf),
        ({"scale": 0.1}, -np.inf, np.inf),
        ({"positive": True}, 0.0, np.inf),
        ({"lower": 0.25}, 0.25, np.inf),
        ({"upper": 2.0, "scale": 3.0}, -np.inf, 2.0),
        ({"lower": 0.25, "upper": 2.0}, 0.25, 2.0),
        ({"positive": True, "upper": 4.0}, 0.0, 4.0),
    ],
)
def test_x_starts_at_the_value_keeps_the_bounds_and_is_differentiable(mass, options, low, high):
    variable = Variable(mass, **options)
    x = variable.start()
    assert float(variable.value(x)) == pytest.approx(0.5, rel=1e-14)
    for far in (-30.0, -1.0, 1.0, 30.0):
        assert low <= float(variable.value(x + far)) <= high
    value = float(variable.value(x + 0.3))
    assert float(variable.encode(value)) == pytest.approx(float(x) + 0.3, rel=1e-12)
    assert torch.autograd.gradcheck(variable.value, (x.clone().requires_grad_(),), eps=1e-6, atol=1e-9, rtol=1e-8)
    assert torch.isinf(variable.lower).all() and torch.isinf(variable.upper).all()


def test_gradients_are_finite_far_outside(mass):
    for options in ({"lower": 0.0, "upper": 1.0}, {}):
        x = torch.tensor([2000.0], dtype=torch.float64, requires_grad=True)
        Variable(mass, **options).value(x).sum().backward()
        assert torch.isfinite(x.grad).all()


def test_projected_bounds_are_handed_on(mass):
    variables = Variables([Variable(mass, lower=0.5, upper=2.0, scale=0.5, projected=True)])
    assert (variables.lower.tolist(), variables.upper.tolist()) == ([1.0], [4.0])
    assert float(variables.values(variables.upper)[mass]) == 2.0


def test_groups_components_and_worlds(sim, mass, velocity):
    other = sim.attribute("/World/Ball1.physics:mass")
    group = Variable([mass, other], positive=True)
    some = Variable(velocity, components=[0, 2], lower=[0.0, -np.inf, 1.0])
    variables = Variables([group, some])
    assert variables.size == 3 and len(variables.names) == 3
    assert variables.names[1:] == ["/World/Ball0.physics:velocity[0]", "/World/Ball0.physics:velocity[2]"]
    x = variables.start()
    values = variables.values(x)
    assert values[mass] is values[other] and float(values[mass]) == pytest.approx(1.0)
    assert values[velocity].tolist() == pytest.approx([1.0, 2.0, 3.0])
    moved = variables.values(x + 0.5)
    assert moved[velocity][1] == 2.0 and (moved[velocity][[0, 2]] > values[velocity][[0, 2]]).all()
    several = variables.values(torch.stack([x, x + 0.5]))
    torch.testing.assert_close(several[velocity], torch.stack([values[velocity], moved[velocity]]))

    own = Variables([Variable(velocity, worlds=4)])
    assert own.size == 12 and own.names[-1] == "/World/Ball0.physics:velocity[2] of world 3"
    assert own.values(own.start())[velocity].shape == (4, 3)
    with pytest.raises(ws.InputError, match="a value per world already"):
        own.values(own.start().expand(4, -1))


def test_one_x_per_world_runs_and_is_differentiated(file):
    sim = ws.Simulator(file, worlds=3)
    velocity = sim.attribute("/World/Ball0.physics:velocity")
    variables = Variables([Variable(velocity, scale=0.5)])
    x = (variables.start() + torch.arange(3.0, dtype=torch.float64)[:, None]).requires_grad_()
    made = sim.rollout(10, parameters=variables.values(x))
    made.body_position("/World/Ball0")[-1].sum().backward()
    expected = torch.full((3, 3), 0.5 * 10 * sim.timestep, dtype=torch.float64)
    torch.testing.assert_close(x.grad, expected)


def test_quaternions_stay_unit(sim):
    turn = sim.attribute("/World/Ball0.xformOp:orient")
    variables = Variables([Variable(turn)])
    value = variables.values(variables.start() + torch.tensor([0.1, 0.2, -0.3, 0.4]))[turn]
    assert float(torch.linalg.vector_norm(value)) == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda m, v: Variable([]), "at least one attribute"),
        (lambda m, v: Variable([m, v]), "shapes and units must be equal"),
        (lambda m, v: Variable(m, lower=2.0, upper=1.0), "must be below"),
        (lambda m, v: Variable(m, lower=0.5), "strictly within"),
        (lambda m, v: Variable(m, lower=0.6, projected=True), "not within"),
        (lambda m, v: Variable(m, scale=0.0), "above 0"),
        (lambda m, v: Variable(m, lower=[1.0, 2.0]), "give one number"),
        (lambda m, v: Variable(m, start=float("nan")), "NaN"),
        (lambda m, v: Variable(m, upper=-1.0, start=-2.0), "no value within the bounds"),
        (lambda m, v: Variable(v, components=[3]), "components"),
        (lambda m, v: Variables([]), "at least one variable"),
        (lambda m, v: Variables([Variable(m), Variable(m)]), "two variables"),
        (lambda m, v: Variables([Variable(v)]).values(torch.zeros(2)), "x has shape"),
        (lambda m, v: Variable(m, lower=0.0).encode(-1.0), "outside the bounds"),
    ],
)
def test_what_makes_no_sense_is_refused(mass, velocity, make, message):
    with pytest.raises(ws.InputError, match=message):
        make(mass, velocity)


def test_a_written_result_holds_the_rounded_values(sim, file, mass, velocity, tmp_path):
    variables = Variables([Variable(mass, positive=True), Variable(velocity)])
    x = variables.start() + 0.1
    gradients = {velocity: torch.tensor([1.0, 2.0, 3.0])}
    write_result(tmp_path / "out.usda", file, sim.scene, values=variables.optimized(x, gradients))
    stage = Usd.Stage.Open(str(tmp_path / "out.usda"))
    rounded = variables.rounded(x)
    for attribute, value in rounded.items():
        stored = stage.GetAttributeAtPath(attribute.path).Get()
        assert np.array_equal(np.array(stored, dtype=np.float64), value.numpy())
    notes = stage.GetAttributeAtPath(velocity.path).GetCustomData()["warpsim"]
    assert list(notes["gradient"]) == [1.0, 2.0, 3.0] and list(notes["initial"]) == [1.0, 2.0, 3.0]
    loaded = ws.Simulator(tmp_path / "out.usda").rollout(20)
    assert torch.equal(loaded.q, sim.rollout(20, parameters=rounded).q)


@pytest.mark.parametrize(
    "options, low, high",
    [
        ({}, -np.inf, np.inf),
        ({"scale": 0.1}, -np.inf, np.inf),
        ({"positive": True, "scale": 2.0}, 0.0, np.inf),
        ({"upper": 2.0, "scale": 3.0}, -np.inf, 2.0),
        ({"lower": 0.25, "upper": 2.0}, 0.25, 2.0),
        ({"lower": 0.25, "upper": 2.0, "projected": True}, 0.25, 2.0),
    ],
)
def test_values_are_linear_in_plain_variables(mass, options, low, high):
    variables = Variables([Variable(mass, **options)])
    plain, x = variables.plain, torch.tensor([0.3], dtype=torch.float64)
    x = x if np.isinf(low) and np.isinf(high) else x + variables.start()
    at = plain.of(x)
    torch.testing.assert_close(plain.x(at), x, rtol=1e-12, atol=1e-12)

    def value(v: torch.Tensor) -> float:
        return variables.values(plain.x(v))[mass].item()

    step = 1e-3
    assert value(at + step) + value(at - step) == pytest.approx(2 * value(at), rel=1e-12)
    assert value(at + step) > value(at)
    for bound, side in ((plain.lower, low), (plain.upper, high)):
        assert torch.isinf(bound).item() == np.isinf(side)
        if np.isfinite(side):
            assert value(bound) == pytest.approx(side, abs=2e-6)
            torch.testing.assert_close(plain.of(plain.x(bound)), bound, rtol=1e-9, atol=0)


def test_what_has_no_bounds_keeps_to_those_of_its_attribute(file, tmp_path):
    stage = Usd.Stage.Open(str(file))
    author.physics_scene(stage, attributes={"mjc:option:density": 1.2})
    stage.GetRootLayer().Export(str(tmp_path / "air.usda"))
    sim = ws.Simulator(tmp_path / "air.usda")
    handles = [sim.attribute(p) for p in ("/World/Physics.mjc:option:density", "/World/Ball0.physics:mass")]
    density, mass = (Variable(handle, scale=2.0) for handle in handles)
    assert density.lower.item() == 0.0 and density.upper.item() == torch.inf
    assert mass.lower.item() == -torch.inf  # no mass is none to simulate with: it is stepped around
    assert Variable(handles[0], positive=True).lower.item() == -torch.inf  # the exponential keeps it
