"""Caps on the constraint solver: raised so that gradients are those of the steps; kept, forward only; or found out."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from capped_support import assert_exact, capped, shared
from contact_support import object_scene, solid
from warpsim.check.records import record_run, replay
from warpsim.cli.main import main
from warpsim.core.errors import InputError, UnconvergedError, UnconvergedWarning, WarpsimError
from warpsim.io.load import load_scene
from warpsim.io.usd.export import export_scene
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.constraint import report
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Options, Scene, convergence
from warpsim.scene.description import SOLVER_STOPS
from warpsim.sim.simulator import Simulator
from warpsim.tape import AllStarts, CheckpointedTape, FullTape, Memory, Revolve, RunningCost, Windows

WORLDS, STEPS, CAP = 3, 6, 6
PROJECT = Path(__file__).resolve().parents[2]


def boxes(**options) -> Scene:
    """A box that slides on another, which slides on the floor: more than one iteration a step."""
    return object_scene(
        solid("box", (0.2, 0.2, 0.1), (0.0, 0.0, 0.099), (0.01, 0.02, 0.1)),
        solid("box", (0.1, 0.1, 0.1), (0.05, 0.0, 0.297), (0.02, 0.01, 0.3)),
        options=Options(**{"solver_iterations": CAP, **options}),
    )


def moving(nv: int) -> torch.Tensor:
    return 0.5 * torch.as_tensor(np.random.default_rng(0).normal(size=(WORLDS, nv)))


def simulator(**options) -> Simulator:
    sim = Simulator(boxes(), worlds=WORLDS, outputs=("solver_status", "solver_error"), **options)
    sim.reset(qd=moving(sim.nv))
    return sim


@pytest.fixture
def too_few(monkeypatch) -> None:
    """A solver that does not converge in every step, for caps are not raised far enough."""
    monkeypatch.setattr(convergence, "MIN_ITERATIONS", 1)


def failures(trajectory) -> tuple[int, int, float, int]:
    """The last step that did not converge, its first world, the residual there, and how many there are."""
    status, error = (trajectory.numpy(name)[1:] for name in ("solver_status", "solver_error"))
    bad = (status != 0) & (error > report.ACCEPTED_RESIDUAL)
    assert 1 < bad.sum() < bad.size  # some, not all
    step = int(np.flatnonzero(bad.any(axis=1))[-1])
    assert step < len(bad) - 1  # nor the last of all
    world = int(np.flatnonzero(bad[step])[0])
    return step, world, float(error[step, world]), int(bad.sum())


def assert_named(error: UnconvergedError, expected: tuple[int, int, float, int]) -> None:
    step, world, residual, _ = expected
    assert (error.step, error.world, error.residual) == (step, world, residual)
    assert f"step {step}, world {world} (residual {residual:.1e})" in str(error)


# ------------------------------------------------------------------------------------------------ caps are raised


@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_the_gradient_of_a_capped_scene_is_that_of_its_differences(iterations):
    assert_exact(boxes(solver_iterations=iterations), f"boxes, cap {iterations}", starts=1)


def test_a_loose_tolerance_is_no_cap_either():
    assert_exact(boxes(solver_iterations=100, solver_tolerance=1e-1), "boxes, tolerance 0.1", starts=1)


def test_a_gradient_at_the_cap_is_wrong(too_few, monkeypatch):
    """What the raising is for; and the comparison sees it."""
    monkeypatch.setattr(report, "ACCEPTED_RESIDUAL", np.inf)
    with pytest.raises(AssertionError):
        assert_exact(boxes(solver_iterations=1), "boxes, cap 1", starts=1)


QUICK = (("assets/brax_ant/mjcf/ant.xml", 1), ("zoo/google_barkour_vb/scene_mjx.xml", None))


@pytest.mark.parametrize(("path", "iterations"), QUICK)
def test_the_gradient_of_a_capped_robot_is_that_of_its_differences(path, iterations):
    if not shared(path).is_file():
        pytest.skip("the third-party robots are not beside the project")
    scene = load_scene(shared(path))
    assert scene.options.solver_iterations < 5
    assert_exact(capped(scene, iterations), path, starts=2)


def robots() -> list[Path]:
    """Every file beside the project that may be a scene, and the project's own."""
    patterns = ("assets/*/mjcf/*.xml", "assets/*/usd/*.usda", "assets/newton/*.usda", "zoo/*/*.xml", "zoo/*/*.urdf")
    return [*(p for pattern in patterns for p in sorted(shared().glob(pattern))), *(PROJECT / "scenes").glob("*.usda")]


@pytest.mark.long
@pytest.mark.parametrize("path", robots(), ids=lambda path: "/".join(path.parts[-3:]))
def test_every_robot_and_scene_under_every_cap(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scene = load_scene(path, strict=False)
            Simulator(scene)
        except WarpsimError as error:  # another test's concern
            pytest.skip(f"does not load: {str(error)[:100]}")
        for iterations in (None, 1, 2, 4):
            assert_exact(capped(scene, iterations), f"{path}, cap {iterations}")


def test_a_cap_changes_no_bit_forward_or_backward():
    made = []
    for iterations in (1, 4, 100):
        sim = Simulator(boxes(solver_iterations=iterations), worlds=WORLDS, outputs=())
        qd = moving(sim.nv)
        plain = sim.rollout(STEPS, qd=qd)
        leaf = qd.clone().requires_grad_()
        differentiated = sim.rollout(STEPS, qd=leaf)
        assert torch.equal(plain.q, differentiated.q.detach()) and torch.equal(plain.qd, differentiated.qd.detach())
        made.append((plain.q, plain.qd, *torch.autograd.grad(differentiated.q[-1].sum(), leaf)))
    for other in made[1:]:
        assert all(torch.equal(a, b) for a, b in zip(made[0], other, strict=True))


MJCF = """<mujoco><option iterations="3" tolerance="1e-4"/><worldbody>
<body><joint name="j" type="hinge" axis="0 1 0"/><geom size=".1" mass="1"/></body></worldbody></mujoco>"""
USD = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def PhysicsScene "Physics"
{
    uint mjc:option:iterations = 3
    double mjc:option:tolerance = 1e-4
}
def Sphere "Ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])
{
}
"""


@pytest.mark.parametrize(
    ("name", "text", "path", "prefix"),
    [("a.xml", MJCF, "option", ""), ("a.usda", USD, "/Physics", "mjc:option:")],
    ids=["mjcf", "usd"],
)
def test_the_ledger_says_that_a_cap_was_raised_and_how_to_keep_it(tmp_path, name, text, path, prefix):
    file = tmp_path / name
    file.write_text(text)
    expected = {"iterations": "3: raised to 500", "tolerance": "0.0001: lowered to 1e-08"}
    for scene in (load_scene(file), Simulator(file).scene):
        for attribute, words in expected.items():
            (entry,) = [e for e in scene.ledger if (e.path, e.attribute) == (path, prefix + attribute)]
            assert words in entry.reason and 'iterations="authored"' in entry.reason
    kept = Simulator(file, iterations="authored").scene
    for attribute in expected:
        (entry,) = [e for e in kept.ledger if (e.path, e.attribute) == (path, prefix + attribute)]
        assert "kept as authored" in entry.reason and "raised" not in entry.reason
    assert (kept.options.solver_iterations, kept.options.solver_tolerance) == (3, 1e-4)


def test_a_scene_without_a_cap_has_no_such_entry():
    assert not Simulator(boxes(solver_iterations=100)).scene.ledger


# ------------------------------------------------------------------------------------------------ the cap is kept


def test_the_authored_cap_is_kept_forward():
    sim = simulator(iterations="authored")
    made = sim.rollout(STEPS, outputs=("solver_status", "solver_error", "solver_iterations"))
    assert made.numpy("solver_iterations").max() == CAP
    failures(made)
    assert not torch.equal(made.q, simulator().rollout(STEPS).q)
    assert sim.with_worlds(1).scene.options.solver_stop == "authored"


def test_without_convergence_there_are_no_gradients():
    sim = simulator(iterations="authored")
    qd, torque = (tensor.requires_grad_() for tensor in (moving(sim.nv), torch.zeros(WORLDS, sim.nv)))
    policy = sim.network_policy(hidden=(3,))
    asked = {
        "rollout": lambda: sim.rollout(3, qd=qd),
        "step": lambda: sim.step(torque.to(sim.torch_dtype)),
        "policy": lambda: sim.rollout_policy(policy, 3),
        "policy in torch": lambda: sim.rollout_policy(policy, 3, in_kernels=False, memory=Memory(segment=3)),
        "jacobians": lambda: sim.jacobians(sim.rollout(3)),
        "gradcheck": lambda: sim.gradcheck(3, parameters=()),
    }
    for name, ask in asked.items():
        with pytest.raises(InputError, match=r'iterations="authored".*forward only') as caught:
            ask()
        assert "converges" in str(caught.value), name
    with torch.no_grad():
        asked["rollout"](), asked["step"](), asked["policy"](), asked["policy in torch"]()


def test_a_record_of_a_kept_cap_is_replayed_with_it(tmp_path):
    file = tmp_path / "boxes.usda"
    export_scene(boxes())[0].Export(str(file))
    for stop in SOLVER_STOPS:
        assert replay(record_run(Simulator(file, iterations=stop), STEPS)).identical


def test_the_command_line_keeps_the_cap(tmp_path, capsys):
    file = tmp_path / "a.xml"
    file.write_text(MJCF)
    for flags, text in (([], "at most 500 iterations"), (["--iterations", "authored"], "at most 3 iterations")):
        assert main(["inspect", str(file), *flags]) == 0
        assert text in capsys.readouterr().out


def test_the_choice_is_checked():
    for stop in ("authered", 7):
        with pytest.raises(InputError, match="iterations="):
            Simulator(boxes(), iterations=stop)
    with pytest.raises(InputError, match="unconverged="):
        Simulator(boxes(), unconverged="ignore")
    assert SOLVER_STOPS == ("converged", "authored")


# ------------------------------------------------------------------------------------------------ steps that fail

CUTS = {
    "whole": {},
    "segments": {"memory": Memory(segment=4)},
    "full tape": {"memory": Memory(schedule=FullTape())},
    "all starts": {"memory": Memory(segment=2, schedule=AllStarts())},
    "binomial": {"memory": Memory(segment=1, schedule=Revolve(2))},
    "windows": {"memory": Memory(schedule=Windows(4))},
    "threads": {"memory": Memory(segment=4), "threads": 3},
}


def test_a_rollout_names_the_last_step_that_did_not_converge(too_few):
    sim = simulator()
    for name, cut in CUTS.items():
        qd = moving(sim.nv).requires_grad_()
        made = sim.rollout(STEPS, qd=qd, **cut)
        for _ in range(2):  # the second time from what the first has left
            with pytest.raises(UnconvergedError) as caught:
                made.q[-1].sum().backward(retain_graph=True)
            assert_named(caught.value, failures(made))
        assert qd.grad is None, name


def test_a_rollout_without_capture_does_so_too(too_few):
    """The tape itself, eagerly, with a running cost around the program."""
    model = compile_model(boxes(), worlds=WORLDS)
    Derivation(model).run()
    program = RunningCost(RigidProgram(model, controls=(), outputs=("solver_status", "solver_error")), _no_cost)
    start = {"q": np.tile(model.initial_q, (WORLDS, 1)), "qd": moving(model.nv).numpy()}
    start["warm_start"] = np.zeros((WORLDS, model.nv))
    expected = failures(simulator().rollout(STEPS))
    for options in ({"capture": False}, {"groups": 3}):
        tape = CheckpointedTape(program, steps=STEPS, memory=Memory(segment=4), **options)
        with tape.forward(start) as run, pytest.raises(UnconvergedError) as caught:
            tape.backward(run, state_seeds={"q": {-1: np.ones((WORLDS, model.nq))}})
        assert_named(caught.value, expected)


def _no_cost(*_: object) -> None:
    """A cost of nothing."""


def test_a_loop_of_steps_names_the_step(too_few):
    sim = simulator()
    expected = failures(sim.rollout(STEPS))
    sim.reset(qd=moving(sim.nv).requires_grad_())
    for _ in range(STEPS):
        state = sim.step()
    with pytest.raises(UnconvergedError) as caught:
        state.q.sum().backward()
    assert_named(caught.value, expected)


@pytest.mark.parametrize("in_kernels", [True, False], ids=["kernels", "torch"])
def test_a_closed_loop_names_the_step(too_few, in_kernels):
    sim = simulator()
    policy = sim.network_policy(hidden=(3,), seed=1)
    made = sim.rollout_policy(policy, STEPS, hold=2, memory=Memory(segment=4), in_kernels=in_kernels)
    with pytest.raises(UnconvergedError) as caught:
        made.q[-1].sum().backward()
    assert_named(caught.value, failures(made))


def test_jacobians_name_the_step(too_few):
    """Single steps, each from rest: they have no warm start, so their solves are not those of the rollout."""
    sim = simulator()
    made = sim.rollout(STEPS)
    found = {}
    for step in range(STEPS):
        once = sim.rollout(1, q=made.q[step], qd=made.qd[step])
        error = np.where(once.numpy("solver_status")[1] != 0, once.numpy("solver_error")[1], 0.0)
        found |= {(step, world): error[world] for world in range(WORLDS) if error[world] > report.ACCEPTED_RESIDUAL}
    step = max(step for step, _ in found)
    world = min(world for at, world in found if at == step)
    with pytest.raises(UnconvergedError) as caught:
        sim.jacobians(made)
    assert (caught.value.step, caught.value.world) == (step, world)
    assert caught.value.residual == pytest.approx(found[step, world], rel=1e-12)


def test_a_warning_instead(too_few):
    sim = simulator(unconverged="warn")
    qd = moving(sim.nv).requires_grad_()
    made = sim.rollout(STEPS, qd=qd, memory=Memory(segment=5))
    step, world, residual, count = failures(made)
    text = rf"{count} solve\(s\).*step {step}, world {world} \(residual {residual:.1e}\)"
    with pytest.warns(UnconvergedWarning, match=text):
        made.q[-1].sum().backward()
    assert torch.isfinite(qd.grad).all() and qd.grad.abs().max() > 0
    with pytest.warns(UnconvergedWarning):
        sim.jacobians(sim.rollout(STEPS))
    assert sim.with_worlds(1)._engine.unconverged == "warn"


def test_rounding_counts_as_converged_below_a_stated_residual(monkeypatch):
    """A tolerance that no arithmetic reaches: every step stops at rounding, and its gradient is right."""
    sim = Simulator(boxes(solver_tolerance=0.0), worlds=WORLDS, outputs=("solver_status", "solver_error"))
    qd = moving(sim.nv).requires_grad_()
    made = sim.rollout(STEPS, qd=qd)
    assert (made.numpy("solver_status")[1:] == 3).any()
    assert made.numpy("solver_error").max() < 1e-9 < report.ACCEPTED_RESIDUAL
    made.q[-1].sum().backward(retain_graph=True)
    monkeypatch.setattr(report, "ACCEPTED_RESIDUAL", 0.0)
    with pytest.raises(UnconvergedError):
        made.q[-1].sum().backward()


def slider() -> Simulator:
    """A tilted box that slides on the floor, capped at one iteration."""
    box = solid("box", (0.2, 0.2, 0.1), (0.0, 0.0, 0.099), (0.01, 0.02, 0.1))
    sim = Simulator(object_scene(box, options=Options(solver_iterations=1)))
    sim.reset(qd=moving(sim.nv)[0])
    return sim


def test_gradcheck_probes_the_scene_as_it_is(too_few):
    """Steps that do not converge have wrong gradients, and the check says so."""
    sim = slider()
    with pytest.warns(UnconvergedWarning):
        found = sim.gradcheck(2, parameters=(), window=1)
    assert not found.ok, str(found)


def test_gradcheck_of_a_capped_scene_says_what_ran():
    found = slider().gradcheck(2, parameters=(), window=1)
    assert found.ok and found.sections, str(found)
    assert "solver: tolerance 1e-10, at most 500 iterations" in str(found)
