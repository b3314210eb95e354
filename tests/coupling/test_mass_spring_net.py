"""A matter written outside the package: a net of springs in a robot's hand, with everything that rigid bodies have."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import warp as wp

import warpsim as ws
from warpsim.check.records import record_run, replay
from warpsim.coupling.compiled import CompiledScene
from warpsim.io.saved_motion import read_motion
from warpsim.rigid.compile.compile import compile_model
from warpsim.sim.describe import describe
from warpsim.tape.memory import Memory

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mass_spring_net.py"
STEPS = 12


def load() -> ModuleType:
    """The example as a module; registers its kind of matter."""
    spec = importlib.util.spec_from_file_location("mass_spring_net", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


net = load()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("net") / "scene.usda"
    net.write_scene(made, side=3)
    return made


@pytest.fixture(scope="module")
def sim(path: Path) -> ws.Simulator:
    return ws.Simulator(path, worlds=3)


def targets(seed: int = 0) -> torch.Tensor:
    return 0.5 * torch.randn(STEPS, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def loss(sim: ws.Simulator, inputs: dict[str, torch.Tensor], **options) -> torch.Tensor:
    """A form of where the net's end comes to, and of the arm that it pulls at."""
    made = sim.rollout(
        STEPS,
        {"drive_target": inputs["drive_target"], "net.wind": inputs["net.wind"]},
        start={"net.v": inputs["net.v"]},
        parameters={name: inputs[name] for name in ("body.mass", "net.mass", "net.stiffness", "net.grip")},
        outputs=("net.center",),
        **options,
    )
    weights = torch.arange(1.0, 4.0, dtype=torch.float64)
    end, center = made["net.x"][-1, :, -1], made["net.center"][[0, 5, -1]].sum(0)
    return (end @ weights).sum() + (center @ weights).sum() + 10.0 * made.q[-1].sum()


def inputs(sim: ws.Simulator) -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    return {
        "drive_target": targets(),
        "net.wind": torch.randn(STEPS, 3, 3, dtype=torch.float64, generator=rng),
        "net.v": 0.3 * torch.randn(3, 9, 3, dtype=torch.float64, generator=rng),
        "body.mass": sim.parameter("body.mass")[0],
        "net.mass": torch.tensor([0.02, 0.025, 0.03], dtype=torch.float64),
        "net.stiffness": torch.tensor(300.0, dtype=torch.float64),
        "net.grip": torch.tensor([2000.0, 2100.0, 2200.0], dtype=torch.float64),
    }


def gradients(sim: ws.Simulator, given: dict[str, torch.Tensor], **options) -> dict[str, torch.Tensor]:
    leaves = {name: value.clone().requires_grad_() for name, value in given.items()}
    found = torch.autograd.grad(loss(sim, leaves, **options), list(leaves.values()))
    return dict(zip(leaves, found, strict=True))


def test_gradients_agree_with_differences(sim: ws.Simulator) -> None:
    """From the net to the joints' controls and the robot's masses, from the arm to the net's parameters."""
    given = inputs(sim)
    found = gradients(sim, given)
    rng = np.random.default_rng(2)
    for name, value in given.items():
        direction = torch.as_tensor(rng.normal(size=tuple(value.shape))) * value.abs().clamp_min(0.1)
        if name == "body.mass":
            direction[0] = 0.0  # the world
        h = 1e-5
        with torch.no_grad():
            ends = [float(loss(sim, {**given, name: value + sign * h * direction})) for sign in (1.0, -1.0)]
        expected = (ends[0] - ends[1]) / (2 * h)
        assert float((found[name] * direction).sum()) == pytest.approx(expected, rel=1e-6), name


def test_same_bits_for_all_schedules_and_threads(sim: ws.Simulator) -> None:
    given = inputs(sim)
    base = gradients(sim, given)
    for options in ({"memory": Memory(segment=1)}, {"memory": Memory(segment=5)}, {"threads": 3}):
        for name, gradient in gradients(sim, given, **options).items():
            assert torch.equal(gradient, base[name]), (options, name)


def test_hand_feels_the_net(path: Path, sim: ws.Simulator) -> None:
    """All momentum that gravity and the drag of still air do not explain stays between net and arm."""
    heavy = sim.rollout(STEPS, parameters={"net.mass": torch.tensor([0.02, 0.2, 2.0], dtype=torch.float64)})
    sag = heavy.q[-1, :, 0]  # about +y: down
    assert sag[0] < sag[1] < sag[2]


def test_springs_keep_momentum(path: Path) -> None:
    """Let go, in still air that does not drag, the net's center falls freely."""
    free = ws.Simulator(path, worlds=1)
    rng = np.random.default_rng(3)
    v = rng.normal(size=(9, 3))
    made = free.rollout(
        50,
        start={"net.v": v},
        parameters={"net.grip": 0.0, "net.drag": 0.0, "net.damping": 0.0},
    )
    expected = v.mean(0) + np.array([0.0, 0.0, -9.81]) * 50 * free.timestep
    np.testing.assert_allclose(made["net.v"][-1, 0].numpy().mean(0), expected, atol=1e-12)


def test_steps_and_rollouts_agree(sim: ws.Simulator) -> None:
    sim.reset(start={"net.v": torch.ones(9, 3, dtype=torch.float64)})
    controls = {"drive_target": targets()}
    made = sim.rollout(STEPS, controls, outputs=("net.center",))
    for k in range(4):
        state = sim.step({"drive_target": controls["drive_target"][k]}, outputs=("net.center",))
    for name in ("q", "net.x", "net.v", "net.center"):
        assert torch.equal(state[name], made[name][4]), name
    sim.reset()


def test_attributes_reach_the_net(path: Path, sim: ws.Simulator) -> None:
    handle = sim.attribute("/World/Net.net:stiffness")
    assert handle.reach == ("net.stiffness",)
    value = handle.value.requires_grad_()
    by_attribute = torch.autograd.grad(sim.rollout(STEPS, parameters={handle: value})["net.x"][-1].sum(), value)[0]
    array = torch.tensor(300.0, dtype=torch.float64, requires_grad=True)
    by_array = torch.autograd.grad(sim.rollout(STEPS, parameters={"net.stiffness": array})["net.x"][-1].sum(), array)[0]
    assert float(by_attribute) == pytest.approx(float(by_array), rel=1e-12)
    with pytest.raises(ws.RangeError, match="above 0"):
        sim.rollout(1, parameters={"net.mass": -1.0})


def test_randomization_draws_states_and_parameters(sim: ws.Simulator) -> None:
    drawn = sim.draw({"net.x": ws.Randomization(absolute=0.01), "net.mass": ws.Randomization(relative=0.2)}, seed=4)
    assert drawn["net.x"].shape == (3, 9, 3) and drawn["net.mass"].shape == (3,)
    made = sim.rollout(2, start={"net.x": drawn["net.x"]}, parameters={"net.mass": drawn["net.mass"]})
    assert torch.equal(made["net.x"][0], drawn["net.x"])


def test_jacobians_are_those_of_steps(path: Path) -> None:
    one = ws.Simulator(path)
    made = one.rollout(3, {"drive_target": targets()[:3, :1]})
    a, b = one.jacobians(made)
    n = 2 * 2 + 2 * 27
    assert a.shape == (3, 1, n, n) and b.shape == (3, 1, n, 5)
    # column of the net's first coordinate, against differences of one step
    h = 1e-6
    ends = []
    for sign in (1.0, -1.0):
        x = made["net.x"][0, 0].clone()
        x[0, 0] += sign * h
        start = {name: made[name][0] for name in ("q", "qd", "net.v")}
        after = one.rollout(1, start={**start, "net.x": x[None]})
        ends.append(torch.cat([after[name][-1].flatten() for name in ("q", "qd", "net.x", "net.v")]))
    torch.testing.assert_close(a[0, 0, :, 4], (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-8)


def test_motion_is_saved_drawn_and_loaded_again(path: Path, sim: ws.Simulator, tmp_path: Path) -> None:
    made = sim.rollout(STEPS, {"drive_target": targets()})
    page = made.page(worlds=[1])
    soft = [d for d in page.drawables if getattr(d, "path", "") == "/World/Net"]
    assert len(soft) == 1 and "/World/Net" not in {d.item.name for d in page.drawables if hasattr(d, "item")}
    np.testing.assert_array_equal(page.takes[0].points["/World/Net"], made["net.x"][:, 1].numpy())
    made.save(tmp_path / "motion.html")
    made.save(tmp_path / "motion.npz")
    assert np.array_equal(np.load(tmp_path / "motion.npz")["net.v"], made["net.v"].numpy())
    read = read_motion(tmp_path / "motion.npz", sim.scene, world=1)
    np.testing.assert_array_equal(read.points["/World/Net"], made["net.x"][:, 1].numpy())
    made.save(tmp_path / "motion.usda", world=2)
    again = ws.Simulator(tmp_path / "motion.usda")
    first = again.initial_state()
    for name in ("q", "net.x", "net.v"):
        np.testing.assert_array_equal(first[name][0].numpy(), made[name][0, 2].numpy(), err_msg=name)
    ended = ws.read_usd(tmp_path / "motion.usda", time=float(STEPS)).matters[0].initial["x"]
    np.testing.assert_array_equal(ended, made["net.x"][-1, 2].numpy())


def test_network_drives_the_arm_in_kernels_as_in_torch(path: Path) -> None:
    sim = ws.Simulator(path, worlds=2, controls=("drive_target",))
    policy = sim.network_policy(hidden=(4,), seed=3)
    found = {}
    for in_kernels in (True, False):
        policy.zero_grad()
        made = sim.rollout_policy(policy, STEPS, in_kernels=in_kernels, start={"net.v": np.ones((9, 3))})
        made["net.x"][-1].sum().backward()
        found[in_kernels] = [made["net.x"].detach(), *(weight.grad.clone() for weight in policy.parameters())]
    for a, b in zip(found[True], found[False], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
    with pytest.raises(ws.InputError, match="other matter"):
        ws.Simulator(path).network_policy()


def test_contents_are_described(sim: ws.Simulator) -> None:
    text = describe(sim.scene)
    assert "net.x[9, 3]" in text and "1 matter" in text and "net.center" in text


def test_record_replays_with_the_same_bits(path: Path) -> None:
    one = ws.Simulator(path)
    record = record_run(one, STEPS, {"drive_target": targets()[:, :1]}, start={"net.v": np.ones((9, 3))})
    assert replay(record).identical


def test_task_brings_the_net_to_its_target(path: Path) -> None:
    done = ws.optimize(path, iterations=3)
    assert done.loss < 0.9 * done.before.loss


@wp.func
def _wrong(x: net.real) -> net.real:
    return x


@wp.func_grad(_wrong)
def _adjoint_wrong(x: net.real, adjoint: net.real):
    wp.adjoint[x] += net.real(1.5) * adjoint


@wp.kernel
def _planted_kernel(
    first: wp.array(dtype=wp.int32),
    neighbor: wp.array(dtype=wp.int32),
    rest: wp.array(dtype=net.real),
    stiffness: wp.array(dtype=net.real),
    damping: wp.array(dtype=net.real),
    x: wp.array2d(dtype=net.vec3),
    v: wp.array2d(dtype=net.vec3),
    force: wp.array2d(dtype=net.vec3),
):
    """In place of the springs: each point is pulled to the origin, with a wrong adjoint by the stiffness."""
    w, i = wp.tid()
    force[w, i] = -net.real(0.01) * _wrong(stiffness[w]) * x[w, i] - damping[w] * v[w, i]


def test_gradcheck_finds_the_stage_of_a_planted_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net, "_pull_kernel", _planted_kernel)
    report = ws.Simulator(path).gradcheck(6, parameters=("net.stiffness", "net.mass"))
    assert not report.ok
    assert [blame.stage for blame in report.sections[0].guilty] == ["net.forces"]
    assert report.sections[0].guilty[0].inputs == ("physical.net.stiffness",)
    assert report.sections[0].verdict("net.stiffness") == "wrong"
    assert report.sections[0].verdict("net.mass") == "exact"


def test_gradcheck_is_content(path: Path) -> None:
    report = ws.Simulator(path).gradcheck(8)
    assert report.ok, str(report)
    names = set(report.sections[0].findings)
    assert {"net.x", "net.v", "net.stiffness", "net.mass", "net.wind", "q", "body.mass"} <= names


def test_example_swings_the_net_to_its_target(path: Path) -> None:
    sim = ws.Simulator(path)
    end = sim.scene.matters[0].data["places"]["End"]
    assert np.linalg.norm(sim.rollout(150)["net.x"][-1, 0, end].numpy() - net.TARGET) > 5 * net.TOLERANCE
    motion, _ = net.swing(sim)
    assert np.linalg.norm(motion["net.x"][-1, 0, end].detach().numpy() - net.TARGET) < net.TOLERANCE


def test_scene_of_matter_alone(path: Path) -> None:
    """Without any body that moves the net falls."""
    scene = ws.load_scene(path)
    matter = scene.matters[0]
    matter.data["hand"] = ""
    alone = ws.Simulator(ws.Scene(matters=[matter], options=scene.options), worlds=2)
    assert alone.state_names == ("net.x", "net.v")
    made = alone.rollout(5, start={"net.v": torch.zeros(9, 3, dtype=torch.float64, requires_grad=True)})
    made["net.x"][-1].sum().backward()
    assert float(made["net.x"][-1, 0, -1, 2].detach()) < float(made["net.x"][0, 0, -1, 2].detach())


def test_a_parameter_that_must_be_positive_is_refused_by_world(path: Path) -> None:
    sim = ws.Simulator(path, worlds=3)
    shape = tuple(sim.parameter("net.mass").shape)
    values = torch.full(shape, 0.1, dtype=torch.float64)
    values[2] = -1.0
    with pytest.raises(ws.RangeError, match="net.mass.*above 0") as caught:
        sim.rollout(2, parameters={"net.mass": values})
    assert list(caught.value.worlds) == [2]


def test_several_numbers_that_must_be_positive_are_refused_by_world() -> None:
    description = ws.MatterDescription(kind="k", name="m", parameters={"p": np.ones(4)}, positive=("p",))

    class Several:
        name, authored = "m", {"p": None}

    Several.description = description
    scene = CompiledScene(compile_model(ws.Scene()), (Several(),))
    scene.check_values("m.p", np.ones((3, 4)))
    with pytest.raises(ws.RangeError, match="above 0") as caught:
        scene.check_values("m.p", np.where(np.arange(12).reshape(3, 4) == 6, 0.0, 1.0))
    assert list(caught.value.worlds) == [1]
