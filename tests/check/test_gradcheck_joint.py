"""The gradient check across the joint between bodies and a cloth: clean code, and planted errors that are located."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warpsim as ws
from cloth_scenes import everything
from planted_errors import scale
from warpsim.check.gradcheck.report import Report
from warpsim.check.gradcheck.stage_blame import JOINT
from warpsim.deformable.adjoint import StepAdjoint
from warpsim.deformable.joint import JointStep
from warpsim.deformable.matter import DeformableMatter
from warpsim.tape.active import active_tape


def check(folder: Path) -> Report:
    """A few steps of a cloth in the hand of an arm, with a ball on it."""
    sim = ws.Simulator(everything(folder / "scene.usda"))
    return sim.gradcheck(6, parameters=("body.mass", "cloth.young", "cloth.friction"), window=3)


def of_bodies(patch: pytest.MonkeyPatch) -> None:
    """λ of bodies is too large."""
    healthy = JointStep.adjoint

    def faulty(self: JointStep, m: Any, work: Any, scratch: Any) -> None:
        healthy(self, m, work, scratch)
        scale(work.residual.grad, 1.1)

    patch.setattr(JointStep, "adjoint", faulty)


def of_the_cloth(patch: pytest.MonkeyPatch) -> None:
    """λ of the cloth is too small."""
    healthy = StepAdjoint.run_with

    def faulty(self: StepAdjoint, *args: Any) -> None:
        scale(self.multiplier, 0.9)
        healthy(self, *args)

    patch.setattr(StepAdjoint, "run_with", faulty)


def of_the_wrench(patch: pytest.MonkeyPatch) -> None:
    """What bodies feel of contacts, held fixed, comes back with the wrong sign."""
    healthy = DeformableMatter.exert

    def faulty(self: DeformableMatter, state: Any, inputs: Any, work: Any, around: Any, rigid: Any, tape: Any) -> None:
        healthy(self, state, inputs, work, around, rigid, tape)
        tape.record_func(lambda: scale(rigid.wrench.grad, -1.0), arrays=[])

    patch.setattr(DeformableMatter, "exert", faulty)


def of_what_it_sees(patch: pytest.MonkeyPatch) -> None:
    """Where the bodies carry its shapes and points, before the solve."""
    healthy = DeformableMatter._see

    def faulty(self: DeformableMatter, inputs: Any, work: Any, around: Any, bodies: Any) -> None:
        healthy(self, inputs, work, around, bodies)
        tape = active_tape()
        if tape is not None:
            tape.record_func(lambda: scale(work.target.grad, 1.3), arrays=[])

    patch.setattr(DeformableMatter, "_see", faulty)


def test_clean_code_raises_no_alarm(tmp_path):
    report = check(tmp_path)
    assert report.ok, str(report)
    found = {name for section in report.sections for name in section.findings}
    assert {"cloth.x", "cloth.v", "q", "qd", "body.mass", "cloth.young"} <= found
    exact = [f for s in report.sections for fs in s.findings.values() for f in fs if f.verdict == "exact"]
    assert len(exact) > 10


@pytest.mark.parametrize(
    ("plant", "stage"),
    [(of_bodies, JOINT), (of_the_cloth, JOINT), (of_the_wrench, JOINT), (of_what_it_sees, "cloth.forces")],
)
def test_planted_error_is_located(plant: Callable[[pytest.MonkeyPatch], None], stage, tmp_path, monkeypatch):
    plant(monkeypatch)
    report = check(tmp_path)
    assert not report.ok
    assert [blame.stage for blame in report.guilty] == [stage], str(report)
