"""Arrays given in Python are refused for what files are refused for, by name, and searches step around them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from warpsim.core.driving import ask, drive
from warpsim.core.errors import InputError, RangeError, SceneError, SimulationError
from warpsim.optimizers.candidates import losses_side_by_side
from warpsim.rigid.compile.compile import compile_model
from warpsim.scene import Body, Drive, Joint, Scene, Shape, validate
from warpsim.sim.simulator import Simulator


def scene(**changes) -> Scene:
    """A cart with a box above the ground; `changes` by "group.field"."""

    def of(group: str) -> dict:
        return {name.split(".")[1]: value for name, value in changes.items() if name.startswith(group + ".")}

    made = Scene(
        bodies=[Body("cart", position=(0, 0, 0.5), **{"mass": 1.0, "inertia": np.eye(3), **of("body")})],
        joints=[
            Joint(
                "rail", "slide", "cart", **{"axis": (1, 0, 0), "limit": (-1, 1), "friction_loss": 0.01, **of("joint")}
            )
        ],
        shapes=[
            Shape("box", "box", body="cart", **{"size": (0.1, 0.1, 0.1), **of("shape")}),
            Shape("ground", "plane", size=(0, 0, 0)),
        ],
        drives=[Drive("motor", "rail", **{"stiffness": 1.0, **of("drive")})],
    )
    for name, value in of("options").items():
        setattr(made.options, name, value)
    for name, value in of("medium").items():
        setattr(made.medium, name, value)
    return made


WRONG = [
    # (array, item, wrong value, the same in a scene, words)
    ("world.timestep", None, 0.0, {"options.timestep": 0.0}, "must be above zero"),
    ("world.timestep", None, -1.0, {"options.timestep": -1.0}, "must be above zero"),
    ("world.medium_density", None, -1.0, {"medium.density": -1.0}, "must not be negative"),
    ("body.mass", 1, -1.0, {"body.mass": -1.0}, "must be above zero"),
    ("body.mass", 1, 0.0, {"body.mass": 0.0}, "must be above zero"),
    (
        "body.inertia",
        1,
        [1, 1, -0.1, 0, 0, 0],
        {"body.inertia": np.diag([1, 1, -0.1])},
        "principal inertia is negative",
    ),
    ("shape.size", 0, [0.1, -0.1, 0.1], {"shape.size": (0.1, -0.1, 0.1)}, "must be above zero"),
    ("shape.friction", 0, [-0.5, 0.0, 0.0], {"shape.friction": (-0.5, 0.0, 0.0)}, "must not be negative"),
    ("shape.density", 0, -5.0, {"shape.density": -5.0}, "must not be negative"),
    ("shape.restitution", 0, 1.5, {"shape.restitution": 1.5}, "between 0 and 1"),
    ("joint.damping", 0, -0.1, {"joint.damping": -0.1}, "must not be negative"),
    ("joint.stiffness", 0, -0.1, {"joint.stiffness": -0.1}, "must not be negative"),
    ("joint.armature", 0, -0.1, {"joint.armature": -0.1}, "must not be negative"),
    ("joint.axis", 0, [0.0, 0.0, 0.0], {"joint.axis": (0, 0, 0)}, "no direction"),
    ("limit.friction_loss", 0, -0.1, {"joint.friction_loss": -0.1}, "must not be negative"),
    ("limit.range", 0, [1.0, -1.0], {"joint.limit": (1, -1)}, "lower must not exceed upper"),
    ("drive.stiffness", 0, -1.0, {"drive.stiffness": -1.0}, "must not be negative"),
    ("drive.max_force", 0, -1.0, {"drive.max_force": -1.0}, "must not be negative"),
    ("body.com", 1, [0.0, np.inf, 0.0], {"body.com": (0, np.inf, 0)}, "finite"),
    ("drive.target", 0, np.nan, {"drive.target": np.nan}, "finite"),
]


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(scene())


@pytest.fixture(scope="module")
def three() -> Simulator:
    return Simulator(scene(), worlds=3)


def wrong_array(sim: Simulator, name: str, item: int | None, value) -> torch.Tensor:
    """The scene's own array, (n, …), with one item wrong."""
    array = sim.parameter(name).detach()[0].clone()
    if item is None:
        return torch.as_tensor(value, dtype=array.dtype)
    array[item] = torch.as_tensor(value, dtype=array.dtype)
    return array


@pytest.mark.parametrize(("name", "item", "value", "authored", "words"), WRONG)
def test_arrays_and_scenes_are_refused_alike(sim, name, item, value, authored, words):
    with pytest.raises(SceneError):
        validate(scene(**authored))
    given = {name: wrong_array(sim, name, item, value)}
    with pytest.raises(RangeError, match=f"parameter '{name}'.*{words}") as caught:
        sim.rollout(2, parameters=given)
    assert isinstance(caught.value, InputError) and isinstance(caught.value, SimulationError)
    assert torch.isfinite(sim.rollout(2).q).all()  # nothing of it stayed


def test_what_a_scene_leaves_open_may_stay(sim):
    """A plane's size, the world's mass and open limits are zero or infinite in the scene itself."""
    own = {name: sim.parameter(name).detach()[0].clone() for name in ("shape.size", "body.mass", "drive.max_force")}
    own["body.mass"][1] = 2.0
    own["shape.size"][0] = 0.2
    assert torch.isfinite(sim.rollout(2, parameters=own).q).all()


def test_worlds_with_wrong_values_are_named_and_dropped(three):
    """Pushed by a spring from rest, the cart's first step is h²·k·Δ/m: known for the masses that are left."""

    def losses(x: torch.Tensor) -> torch.Tensor:
        masses = torch.stack([torch.zeros_like(x[:, 0]), x[:, 0]], -1)
        sims = three if len(x) == 3 else three.with_worlds(len(x))
        return sims.rollout(1, parameters={"body.mass": masses, "drive.target": torch.full((1,), 0.5).double()}).qd[
            -1, :, 0
        ]

    x = torch.tensor([[2.0], [-1.0], [4.0]], dtype=torch.float64, requires_grad=True)
    with pytest.raises(RangeError, match="item 1 of world 1 was given -1.0") as caught:
        losses(x)
    assert caught.value.worlds == (1,)
    found = drive(losses_side_by_side(partial(ask, losses), x))
    assert torch.isinf(found[1]) and found[0].item() == pytest.approx(2 * found[2].item(), rel=0.01)
    (slope,) = torch.autograd.grad(found[[0, 2]].sum(), x)
    assert slope[1] == 0 and (slope[[0, 2]] < 0).all()


def test_what_is_refused_is_not_in_force(sim):
    before = sim.timestep
    with pytest.raises(RangeError, match="'world.timestep' was given -1.0; it must be above zero"):
        sim.set_parameters({"world.timestep": -1.0})
    assert sim.timestep == before and torch.isfinite(sim.step().q).all()
    sim.reset()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("body.mass", -1.0),
        ("world.timestep", 0.0),
        ("shape.size", -0.1),
        ("shape.friction", np.nan),
        ("joint.axis", 0.0),
    ],
)
def test_a_model_is_as_strict(name, value):
    """Below the simulator, where tools and tests set parameters of a compiled model."""
    model = compile_model(scene(), worlds=2)
    before = model.authored[name].numpy().copy()
    with pytest.raises(RangeError, match=name):
        model.set_parameter(name, np.full(before.shape, value))
    assert np.array_equal(model.authored[name].numpy(), before)
    model.set_parameter(name, before)


def test_a_small_inertia_is_judged_by_its_own_size():
    sim = Simulator(scene(**{"body.inertia": 1e-7 * np.eye(3)}))
    values = sim.parameter("body.inertia")[0]
    values[1] = torch.tensor([1e-7, 1e-7, -1e-8, 0, 0, 0], dtype=values.dtype)
    with pytest.raises(RangeError, match="principal inertia is negative"):
        sim.set_parameters({"body.inertia": values})
