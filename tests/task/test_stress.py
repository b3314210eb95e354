"""`warpsim stress`: what it changes, and which results it calls simulator exploits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from record_support import ball
from task_scenes import reach, saved, swing
from warpsim.check.records import read_record, replay
from warpsim.cli.main import main
from warpsim.io.load import load_scene
from warpsim.io.usd import author
from warpsim.scene import Body, Joint, Scene
from warpsim.sim.simulator import Simulator
from warpsim.task import Steps, TaskProblem, optimize, read_task, stress
from warpsim.task.stress import varied
from warpsim.task.transmission import Transmission
from warpsim.task.variations import Variation, scaled_contact, scaled_friction, scaled_mass, variations

SCENES = Path(__file__).resolve().parents[2] / "scenes"
FALL = 9.81 * 0.4
"""m/s: what a throw of 0.4 s falls by in a second more; a step late or early misses by its half of that."""


def throw(folder: Path, steps_per_second: int, tolerance: float) -> Path:
    """The result of a throw, optimized at some step to hit within some distance."""
    text = (SCENES / "throw.usda").read_text()
    text = text.replace("timeStepsPerSecond = 1000", f"timeStepsPerSecond = {steps_per_second}")
    text = text.replace("double tolerance = 0.001", f"double tolerance = {tolerance}")
    path = folder / "throw.usda"
    path.write_text(text)
    done = optimize(path, iterations=10)
    assert done.solved
    return done.save(folder / "out", film=False)[0]


def test_what_a_coarse_step_solves_is_an_exploit(tmp_path, capsys):
    """At 20 ms semi-implicit Euler falls g·T·h/2 too far, and half of that at half the step, where the throw misses."""
    result = throw(tmp_path, 50, 0.01)
    assert main(["stress", str(result), "-o", str(tmp_path / "stress.json")]) == 4
    printed = capsys.readouterr().out
    assert "SIMULATOR EXPLOIT: holds at" in printed and "half step" in printed
    record = read_record(tmp_path / "stress.json")
    assert "simulator exploit" in {label["name"] for label in record.labels}
    rows = {row["name"]: row for row in record.more["stress"]}
    for name, miss in (("half step", 0.01 / 2), ("double step", 0.02 / 2), ("integrator rk4", 0.02 / 2)):
        assert rows[name]["success"] is False
        assert rows[name]["loss"] == pytest.approx(0.5 * (FALL * miss) ** 2, rel=1e-3), name
    assert rows["as optimized"]["success"] and rows["mass +10 %"]["success"]
    assert replay(record).identical


@pytest.mark.long
def test_a_robust_result_is_none(tmp_path, capsys):
    result = throw(tmp_path, 1000, 0.01)
    assert main(["stress", str(result)]) == 0
    assert "HOLDS at 12 of 12 variations" in capsys.readouterr().out


def arm(folder: Path, kind: str = "Knots", **more: object) -> TaskProblem:
    """A two-link arm with motors whose values are not zero."""
    stage, task = swing()
    reach(task, tolerance=10.0)
    author.task_part(task, kind, "Motors", **more)
    path = saved(stage, folder)
    sim = Simulator(path)
    return TaskProblem(sim, read_task(path, sim.scene))


def inputs(problem: TaskProblem) -> np.ndarray:
    """(steps, n) as applied."""
    with torch.no_grad():
        return problem.episode(problem.authored()).inputs["actuator"][:, 0].numpy()


def test_a_result_with_controls(tmp_path, capsys):
    """Any place is near enough: held at all, as sent, late and noisy; and nowhere once no place is."""
    problem = arm(tmp_path, count=3, values=[0, 0, 1, -1, 2, 0.5])
    found = stress(problem.sim.path)
    names = [row.name for row in found.outcomes]
    assert names[-3:] == ["control noise 1 %", "control 1 step late", "control 3 steps late"]
    assert found.exploit is None and all(row.success for row in found.outcomes)
    assert len({row.loss for row in found.outcomes}) == len(names), "each variation must change the motion"
    far = tmp_path / "far.usda"
    far.write_text(problem.sim.path.read_text().replace("tolerance = 10", "tolerance = 0.001"))
    assert main(["stress", str(far)]) == 3
    assert "NOT SOLVED as it stands" in capsys.readouterr().out


def test_controls_under_way(tmp_path):
    """Held over the same time at another step; later by whole steps; noise seeded and within the range."""
    problem = arm(tmp_path, count=3, values=[0, 4, 1, -1, 2, 0.5])
    given = inputs(problem)
    half = varied(problem, Variation("", step=0.5))
    assert half.steps == 40 and half.sim.timestep == problem.sim.timestep / 2
    assert np.array_equal(inputs(half), np.repeat(given, 2, axis=0))
    assert np.array_equal(inputs(varied(problem, Variation("", step=2.0))), given[::2])
    late = inputs(varied(problem, Variation("", transmission=Transmission(delay=3))))
    assert np.array_equal(late[3:], given[:-3]) and not late[:3].any()
    first, again, other = (
        inputs(varied(problem, Variation("", transmission=Transmission(noise=0.01, seed=seed)))) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert first.max() == 4.0 == given.max() and 0.03 < np.std(first - given) < 0.09  # 1 % of a range of 6


def test_before_late_controls_arrive_drives_rest_at_their_targets(tmp_path):
    stage, task = swing(drives=True, actuators=False)
    reach(task, tolerance=10.0)
    author.task_part(task, "Steps", "Servo", values=[0.5, -0.2])
    path = saved(stage, tmp_path)
    sim = Simulator(path)
    late = varied(TaskProblem(sim, read_task(path, sim.scene)), Variation("", transmission=Transmission(delay=3)))
    with torch.no_grad():
        used = late.episode(late.authored()).inputs["drive_target"][:, 0].numpy()
    assert np.allclose(used[:3], [0.0, np.radians(30.0)], atol=1e-7)
    assert np.allclose(used[3:], [0.5, -0.2])


def test_a_late_feedback_acts_on_what_was(tmp_path):
    joints = ["/World/Joint0", "/World/Joint1"]
    problem = arm(tmp_path, "Feedback", joints=joints, values=[0.3, 0.2, 0.02, 0.01])
    late = varied(problem, Variation("", transmission=Transmission(delay=2)))
    with torch.no_grad():
        episode = late.episode(late.authored())
    q, qd = (episode.trajectory[name][:, 0].numpy() for name in ("q", "qd"))
    asked = np.array([0.3, 0.2]) * (q[0] - q) - np.array([0.02, 0.01]) * qd
    assert np.allclose(episode.inputs["actuator"][2:, 0], asked[:-3], rtol=1e-12, atol=1e-15)
    again = late.sim.rollout(controls=episode.inputs)
    assert np.array_equal(again.numpy("q")[:, 0], q), "what is reported is what was applied"


def test_a_stiffer_contact_sinks_in_less():
    """At rest the depth is inverse to the stiffness, whatever the damping, for either form of solref."""
    for solref in ((0.02, 1.0), (-2500.0, -100.0)):
        scene = ball()
        for shape in scene.shapes:
            shape.solref, shape.solimp = np.array(solref), np.array([0.9, 0.9, 0.001, 0.5, 2.0])
        scenes = [scene, scaled_contact(scene, stiffness=2.0), scaled_contact(scene, damping=0.5)]
        depths = [0.1 - float(Simulator(s).rollout(steps=1000).q[-1, 0, 2]) for s in scenes]
        assert depths[0] > 1e-4
        assert depths[1] == pytest.approx(depths[0] / 2, rel=1e-6)
        assert depths[2] == pytest.approx(depths[0], rel=1e-6)


def test_a_tenth_more_mass_is_a_tenth_more_energy(tmp_path):
    """Whether masses follow from densities, are given to shapes, or to bodies with their inertias."""
    rod = Body("rod", mass=2.0, com=np.array([0.1, 0.0, 0.2]), inertia=np.diag([0.1, 0.2, 0.25]))
    free = Scene(bodies=[rod], joints=[Joint("rod", "free", "rod")])
    for scene in (arm(tmp_path).sim.scene, load_scene(SCENES / "throw.usda"), free):
        light, heavy = Simulator(scene), Simulator(scaled_mass(scene, 1.1))
        qd = np.linspace(1.0, 2.0, light.nv)
        energies = [s.rollout(steps=1, qd=qd, outputs=("kinetic_energy",))["kinetic_energy"][0] for s in (light, heavy)]
        assert float(energies[1]) == pytest.approx(1.1 * float(energies[0]), rel=1e-12) and energies[0] > 0


def test_frictions_and_switches():
    scene = load_scene(SCENES / "quadruped.usda")
    rough = scaled_friction(scene, 0.9)
    assert all(np.array_equal(b.friction, 0.9 * a.friction) for a, b in zip(scene.shapes, rough.shapes, strict=True))
    soft = replace(scene, options=replace(scene.options, contact_softening=0.01, impacts=True))
    made = {v.name: v.scene(soft).options for v in variations(soft, contacts=True, controls=False)}
    assert made["softening off"].contact_softening == 0.0 and not made["impacts off"].impacts
    names = [v.name for v in variations(scene, contacts=False, controls=False)]
    assert not any("contact" in name or "impacts" in name or "control" in name for name in names)


def test_control_names_are_kept(tmp_path):
    """Terms refer to controls by name, also at another step."""
    problem = arm(tmp_path, count=3, values=[0, 4, 1, -1, 2, 0.5])
    (control,) = varied(problem, Variation("", step=0.5)).task.controls
    assert isinstance(control, Steps) and control.name == "/World/Task/Motors"


def test_noise_is_measured_by_the_range_or_by_the_signal():
    signal = torch.full((4000, 1, 2), 3.0, dtype=torch.float64)
    limits = np.array([[-97.0, -np.inf], [103.0, np.inf]])
    applied = Transmission(noise=0.01, seed=1).sent(signal, limits, np.zeros(2))
    deviation = (applied - signal).std(0)[0].tolist()
    assert deviation == pytest.approx([0.01 * 200.0, 0.01 * 3.0], rel=0.05)
    cut = Transmission(noise=10.0, seed=1).sent(signal, np.array([[2.0, 2.5], [3.5, 4.0]]), np.zeros(2))
    assert [cut[..., 0].min(), cut[..., 0].max(), cut[..., 1].min(), cut[..., 1].max()] == [2.0, 3.5, 2.5, 4.0]
