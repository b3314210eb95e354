"""Stages have names and times; watching them changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from random_models import random_state
from rigid_support import INTEGRATORS, random_model, scene_of
from warpsim.core import stages
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape.timers import time_stages


def program_of(integrator: str):
    model = random_model(1, integrator)
    ours = compile_model(scene_of(model))
    Derivation(ours).run()
    state = random_state(model, 1)
    values = {"q": state.qpos, "qd": state.qvel}
    return RigidProgram(ours, controls=["actuator"]), values | ({"activation": state.act} if model.na else {}), state


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_every_stage_has_a_name_and_a_time(integrator):
    program, values, state = program_of(integrator)
    times = time_stages(program, values, {"actuator": state.ctrl}, adjoint=True, repeats=3)
    forward = {name for name in times if not name.endswith(".adjoint")}
    assert {"step.dynamics.kinematics", "step.dynamics.mass_matrix", "step.dynamics.acceleration"} <= forward
    assert {"step.dynamics.kinematics.adjoint", "step.dynamics.passive.adjoint"} <= set(times)
    assert all(np.isfinite(time) and time >= 0.0 for time in times.values())
    assert times.total == pytest.approx(sum(times.values()))
    lines = str(times).splitlines()
    assert len(lines) == len(times) + 1 and all(line.endswith("µs") for line in lines)
    assert ("step.dynamics.implicit_matrix" in times) == (integrator == "implicitfast")


def test_wrong_arguments_are_named():
    program, values, _ = program_of("euler")
    with pytest.raises(InputError, match="state 'qd' is missing"):
        time_stages(program, {"q": values["q"]})
    with pytest.raises(UnknownNameError, match="'torque'"):
        time_stages(program, values, {"torque": 0.0})
    with pytest.raises(InputError, match="repeats=0"):
        time_stages(program, values, repeats=0)


def test_only_outermost_stages_are_watched():
    seen = []

    @stages.stage
    def inner() -> None:
        seen.append("ran inner")

    @stages.stage
    def outer() -> None:
        inner()

    def watch(name, run):
        seen.append(name.rsplit(".", 1)[-1])
        run()

    with stages.observe(watch):
        outer()
        inner()
    outer()
    assert seen == ["outer", "ran inner", "inner", "ran inner", "ran inner"]
