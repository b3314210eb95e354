"""Verdicts on the project's scenes against differences of our own, taken one rollout at a time by the public calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from finite_differences import directional_estimate
from planted_errors import Fault
from warpsim.check.gradcheck.losses import RandomForm
from warpsim.check.gradcheck.report import Report, Section
from warpsim.check.gradcheck.verdicts import EXACT, NOISY, SMOOTHED, SWITCH, VERDICTS, WRONG, ZERO, Finding
from warpsim.cli.main import main
from warpsim.rigid.model.tangent import shift
from warpsim.sim.simulator import Simulator

SCENES = sorted((Path(__file__).resolve().parents[2] / "scenes").glob("*.usda"))
QUICK = ("cartpole",)
SAMPLES = 2
STEPS = (1e-4, 1e-5, 1e-6, 1e-7)
AGREES, SEEN = 1e-4, 1e-7


def differences(sim: Simulator, section: Section, finding: Finding) -> tuple[float, float]:
    """The derivative of a finding by rollouts of the simulator, and its error."""
    window, direction = section.window, finding.derivative.direction
    whole = sim.rollout(steps=max(window.start, 1), outputs=())
    state = {"q": whole.q[window.start], "qd": whole.qd[window.start]}
    controls = {name: t[: window.steps] for name, t in sim._rollouts.default_controls(window.steps).items()}
    loss = RandomForm(0, ("q", "qd", "activation"))

    def value(x: np.ndarray) -> float:
        move = torch.as_tensor(x, dtype=sim.torch_dtype)
        given, moved, parameters = dict(state), dict(controls), {}
        if direction.input == "q":
            given["q"] = shift(sim.model.layout, given["q"], move[None])
        elif direction.kind == "state":
            given[direction.input] = given[direction.input] + move
        elif direction.kind == "control":
            moved[direction.input] = moved[direction.input] + move.unsqueeze(1)
        else:
            parameters[direction.input] = sim.parameter(direction.input)[0] + move
        made = sim.rollout(controls=moved, **given, parameters=parameters, outputs=())
        return float(loss(made)[0])

    found = directional_estimate(value, np.zeros_like(direction.tangent), direction.tangent, STEPS)
    return float(found.value), found.error


def assert_agrees(sim: Simulator, report: Report) -> None:
    largest = max(f.derivative.terms for s in report.sections for fs in s.findings.values() for f in fs)
    for section in report.sections:
        for name, findings in section.findings.items():
            for finding in findings[:SAMPLES]:
                where = (section.window.name, name, finding)
                value, error = differences(sim, section, finding)
                scale = max(abs(value), finding.derivative.terms)
                if finding.verdict == EXACT and error < 0.01 * scale:
                    assert abs(value - finding.derivative.gradient) <= AGREES * scale + 3.0 * error, where
                elif finding.verdict == ZERO:
                    assert abs(value) <= 3.0 * error + SEEN * largest, where
                assert finding.verdict in (EXACT, ZERO, SWITCH, NOISY, SMOOTHED), where


def check_scene(path: Path) -> None:
    sim = Simulator(path)
    report = sim.gradcheck(min(1000, round(1.0 / sim.timestep)), window=5)
    assert report.ok, str(report)
    assert report.sections
    assert_agrees(sim, report)


@pytest.mark.parametrize("path", [p for p in SCENES if p.stem in QUICK], ids=lambda p: p.stem)
def test_verdicts_agree_with_other_differences(path):
    check_scene(path)


@pytest.mark.long
@pytest.mark.parametrize("path", [p for p in SCENES if p.stem not in QUICK], ids=lambda p: p.stem)
def test_verdicts_of_all_scenes_agree_with_other_differences(path):
    check_scene(path)


def test_the_command_prints_verdicts_and_succeeds(capsys):
    scene = next(p for p in SCENES if p.stem == "pendulum")
    assert main(["gradcheck", str(scene), "--steps", "20", "--parameter", "shape.mass"]) == 0
    out = capsys.readouterr().out
    assert "shape.mass" in out and "exact" in out and out.rstrip().endswith("no wrong gradient")


def test_a_wrong_gradient_is_an_exit_code(capsys, monkeypatch):
    Fault("semi_implicit", "scale", lambda a: a["s_out"].qd, 2.0).plant(monkeypatch)
    scene = next(p for p in SCENES if p.stem == "pendulum")
    assert main(["gradcheck", str(scene), "--steps", "4", "--window", "2"]) == 1
    assert "guilty stage: dynamics.integrate.semi_implicit" in capsys.readouterr().out


def test_every_verdict_is_one_of_the_documented_ones():
    assert set(VERDICTS) == {EXACT, SMOOTHED, SWITCH, ZERO, NOISY, WRONG}
