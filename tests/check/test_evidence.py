"""Run records: what is in them, replaying bit for bit, comparing by name, and every failure label provoked."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from record_support import ball
from tools.evidence.chaos import double_pendulum
from warpsim.check.records import LABELS, RunRecord, compare, read_record, record_run, replay
from warpsim.check.records.plain import decode, encode
from warpsim.check.validity import measure_validity
from warpsim.cli.main import main
from warpsim.core.errors import InputError
from warpsim.optimizers.identification import identify
from warpsim.scene import Actuator, Body, Joint, Scene, Shape
from warpsim.sim.simulator import Simulator
from warpsim.sim.start import Start

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def names(record: RunRecord) -> set[str]:
    return {found["name"] for found in record.labels}


def test_arrays_are_held_to_the_last_bit():
    """Whatever they hold; what is no number is written as text, which JSON has no other form for."""
    for array in (
        np.array([[0.1, -0.0], [np.nan, np.inf]]),
        np.array([1 / 3, 1e-300, 5e-324, -np.inf]),
        np.array([[0.1, 0.2]], dtype=np.float32),
        np.array([2**53 + 1, -1]),
        np.array([True, False]),
        np.zeros((0, 3)),
        np.array(2.5),
    ):
        again = decode(json.loads(json.dumps(encode(array), allow_nan=False)))
        assert again.dtype == array.dtype and again.shape == array.shape and again.tobytes() == array.tobytes()


def test_a_record_survives_the_file(tmp_path):
    sim = Simulator(SCENES / "cartpole.usda")
    controls = torch.linspace(-1.0, 1.0, 50, dtype=sim.torch_dtype).reshape(50, 1, 1)
    made = record_run(sim, controls=controls, seed=3, loss=lambda t: t.q[-1].square().sum())
    again = read_record(made.save(tmp_path / "run.json"))
    assert json.dumps(again.plain()) == json.dumps(made.plain())
    assert again.horizon == {"steps": 50, "seconds": 50 * sim.timestep}
    assert again.seed == 3
    np.testing.assert_array_equal(again.actions["actuator"], controls.numpy())
    np.testing.assert_array_equal(again.trajectory["q"], sim.rollout(controls=controls).numpy("q"))
    assert again.gradient["norms"]["actuator"] > 0.0
    assert again.bounds["actuator.control_range"].shape == (1, 2)
    plain = made.plain()
    for section in ("units", "frames", "versions", "settings", "labels", "control_period", "latency", "created"):
        assert section in plain
    assert plain["settings"]["solver_tolerance"] == sim.scene.options.solver_tolerance
    assert len(plain["scene"]["scene_sha256"]) == 64


@pytest.mark.parametrize("scene", ["throw", pytest.param("quadruped", marks=pytest.mark.long)])
def test_a_replay_has_the_same_bits(scene, tmp_path):
    sim = Simulator(SCENES / f"{scene}.usda")
    mass = 1.3 * sim.parameter("shape.mass")[0]
    sim.set_parameters({"shape.mass": mass})
    sim.reset(start=Start(velocity_noise=0.1, seed=1))
    first = record_run(sim, 120)
    path = first.save(tmp_path / "first.json")
    second = replay(read_record(path))
    assert second.identical, second.text
    assert second.record.trajectory["sha256"] == first.trajectory["sha256"]
    assert compare(first, second.record).inputs == {}


def test_two_replays_in_processes_of_their_own_have_the_same_bits(tmp_path, capsys):
    path, again = tmp_path / "run.json", tmp_path / "again.json"
    assert main(["simulate", str(SCENES / "throw.usda"), "--steps", "60", "--record", str(path), "--quiet"]) == 0
    assert main(["replay", str(path), "-o", str(again)]) == 0
    assert "identical bits" in capsys.readouterr().out
    assert main(["compare", str(path), str(again)]) == 0
    out = capsys.readouterr().out
    assert "inputs: the same" in out and "trajectories: identical bits" in out


def test_a_perturbed_parameter_shows_by_name(tmp_path):
    sim = Simulator(SCENES / "cartpole.usda")
    before = record_run(sim, 40)
    mass = sim.parameter("shape.mass")[0]
    mass[1] *= 1.1
    sim.set_parameters({"shape.mass": mass})
    found = compare(before, record_run(sim, 40))
    assert list(found.inputs) == ["parameters.shape.mass[/World/Cart/Pole/Rod]"]
    assert not found.identical
    assert "parameters.shape.mass[/World/Cart/Pole/Rod]" in str(found)


def test_the_largest_deviation_is_shown(tmp_path):
    """Of all numbers of an input, whichever way it went; none where there are no numbers to take apart."""
    sim = Simulator(SCENES / "cartpole.usda")
    controls = torch.zeros(20, 1, 1, dtype=sim.torch_dtype)
    before = record_run(sim, controls=controls, seed=1)
    controls[4], controls[9], controls[15] = 0.25, -0.75, 0.5  # in place: the record keeps what was given
    found = compare(before, record_run(sim, controls=controls, seed=3))
    first, second, off = found.inputs["actions.actuator"]
    assert (first.count(" 0"), off) == (7, 0.75) and second.startswith("[0, 0, 0, 0, 0.25")
    assert found.inputs["seed"] == ("1", "3", 2.0)
    assert "(by 0.75)" in str(found) and "seed: 1 → 3  (by 2)" in str(found)
    renamed = replace(before, device="elsewhere")
    assert compare(before, renamed).inputs["device"][2] is None


def test_the_share_of_saturated_steps_is_compared():
    sim = Simulator(motor())
    controls = torch.full((20, 1), 0.5, dtype=sim.torch_dtype)
    gentle = record_run(sim, controls=controls)
    controls[:5] = 2.0
    found = compare(gentle, record_run(sim, controls=controls))
    assert found.results["saturated, %"] == ("0", "25")


def test_a_record_costs_no_python_per_step():
    """What it adds to a rollout is read from whole arrays: twenty times the steps, as many calls."""
    sim = Simulator(ball())

    def calls(steps: int) -> int:
        record_run(sim, steps)  # compiles and captures
        count = 0

        def watch(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(watch)
        try:
            record_run(sim, steps)
        finally:
            sys.setprofile(None)
        return count

    few, many = calls(20), calls(400)
    assert many < few + 100, (few, many)


def test_a_changed_scene_is_not_replayed(tmp_path):
    copy = tmp_path / "throw.usda"
    text = (SCENES / "throw.usda").read_text()
    copy.write_text(text)
    record = record_run(Simulator(copy), 10)
    copy.write_text(text.replace("physics:mass = ", "physics:mass = 1"))
    with pytest.raises(InputError, match="hash"):
        replay(record)


def test_what_is_not_a_record_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="not a run record"):
        read_record(path)


def motor(limit: float = 1.0) -> Scene:
    """A hinged rod with a motor."""
    scene = Scene()
    scene.bodies.append(Body("rod"))
    scene.joints.append(Joint("hinge", "hinge", "rod", axis=np.array([0.0, 1.0, 0.0])))
    scene.shapes.append(Shape("rod", "capsule", "rod", np.array([0.0, 0.0, 0.3]), size=np.array([0.03, 0.2, 0.0])))
    scene.shapes[0].collides = False
    scene.actuators.append(Actuator("motor", "joint", "hinge", control_range=(-limit, limit)))
    return scene


def test_non_finite():
    scene = motor(np.inf)
    sim = Simulator(scene)
    record = record_run(sim, controls=torch.full((20, 1), 1e200, dtype=sim.torch_dtype))
    assert "non-finite" in names(record)


def test_solver_not_converged():
    capped = Simulator(ball(solver_iterations=1, solver_tolerance=1e-30), iterations="authored")
    assert "solver not converged" in names(record_run(capped, 200))
    assert "solver not converged" not in names(record_run(Simulator(ball()), 200))


def test_exploding_gradient():
    """A rod balanced on its end: its adjoint grows as fast as it would fall."""
    sim = Simulator(motor())
    for steps, explodes in ((1500, True), (100, False)):
        measured = measure_validity(sim, steps, q=np.zeros(1)).record()
        record = record_run(sim, steps, q=np.zeros(1), gradient=measured)
        assert ("exploding gradient" in names(record)) is explodes


def test_vanishing_gradient():
    """A motor beyond its limit: the control could do better, and its gradient cannot know."""
    sim = Simulator(motor())

    def loss(trajectory):
        return (trajectory.q[-1] - 1.0).square().sum()

    for control, vanishes in ((2.0, True), (0.5, False)):
        u = torch.full((20, 1), control, dtype=sim.torch_dtype)
        record = record_run(sim, controls=u, outcome={"success": False}, loss=loss, by=("actuator",))
        assert ("vanishing gradient" in names(record)) is vanishes


@pytest.mark.long
def test_chaotic_horizon():
    sim = Simulator(double_pendulum())
    for steps, chaotic in ((10000, True), (500, False)):
        record = record_run(sim, steps, gradient=measure_validity(sim, steps).record())
        assert ("chaotic horizon" in names(record)) is chaotic


def test_contact_mode_switch():
    record = record_run(Simulator(ball()), 200)
    assert "contact-mode switch" in names(record)
    fall = np.sqrt(2 * 0.05 / 9.81)
    assert record.observations["mode_switches"][0] == pytest.approx(fall, abs=0.005)
    assert "contact-mode switch" not in names(record_run(Simulator(ball()), 20))


def test_energy_drift():
    """A double pendulum gains energy where steps are too long; with short ones it does not."""
    for timestep, drifts in ((0.02, True), (0.001, False)):
        record = record_run(Simulator(double_pendulum(timestep)), round(4.0 / timestep))
        assert ("energy drift" in names(record)) is drifts, timestep


def test_deep_penetration():
    hard, soft = ball(), ball()
    for shape in soft.shapes:
        shape.solref = np.array([0.3, 1.0])
    assert "deep penetration" in names(record_run(Simulator(soft), 300))
    assert "deep penetration" not in names(record_run(Simulator(hard), 300))


def test_saturated_actuator():
    sim = Simulator(motor())
    hard, soft = (torch.full((20, 1), u, dtype=sim.torch_dtype) for u in (2.0, 0.5))
    assert "saturated actuator" in names(record_run(sim, controls=hard))
    assert "saturated actuator" not in names(record_run(sim, controls=soft))


def test_late_action():
    sim = Simulator(motor())
    assert "late action" in names(record_run(sim, 5, latency=[0.001, 0.02], control_period=0.01))
    assert "late action" not in names(record_run(sim, 5, latency=[0.001, 0.002], control_period=0.01))


@pytest.mark.long
def test_not_identifiable():
    """Two shapes of one body at one place: the motion knows the sum of their masses, and nothing else."""
    for place, known in ((0.3, False), (0.5, True)):
        scene = motor()
        scene.shapes.append(replace(scene.shapes[0], name="twin", position=np.array([0.0, 0.0, place])))
        for shape in scene.shapes:
            shape.mass = 1.0
        sim = Simulator(scene)
        u = torch.full((200, 1), 0.5, dtype=sim.torch_dtype)
        mass = sim.parameter("shape.mass")[0]
        jacobian = torch.autograd.functional.jacobian(
            lambda m, s=sim, u=u: s.rollout(controls=u, parameters={"shape.mass": m}).q[::40, 0, 0], mass
        )
        fit = identify(["a", "b"], mass, torch.linalg.qr(jacobian).R, 1e-6, len(jacobian), torch.zeros(2).bool())
        record = record_run(sim, controls=u, more={"identification": {"singular_values": fit.singular_values}})
        assert ("not identifiable" in names(record)) is not known


def test_task_not_reached():
    sim = Simulator(motor())
    assert "task not reached" in names(record_run(sim, 5, outcome={"success": False}))
    assert "task not reached" not in names(record_run(sim, 5, outcome={"success": True}))


def test_simulator_exploit():
    sim = Simulator(motor())
    rows = [{"name": "as optimized", "success": True}, {"name": "half step", "success": False}]
    assert "simulator exploit" in names(record_run(sim, 5, more={"stress": rows}))
    rows[1]["success"] = True
    assert "simulator exploit" not in names(record_run(sim, 5, more={"stress": rows}))


def test_every_label_has_a_provocation():
    tests = Path(__file__).read_text()
    for name in LABELS:
        assert f'"{name}" in ' in tests or f'("{name}" in' in tests, name
