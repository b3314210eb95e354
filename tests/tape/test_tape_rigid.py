"""Rigid bodies in contact under the checkpointed tape: every schedule, storage and thread count gives the same bits."""

from pathlib import Path

import numpy as np
import pytest

from warpsim.io.usd.reader import read_usd
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape import AllStarts, CheckpointedTape, FullTape, Memory, Revolve

STEPS, WORLDS = 23, 2
PARAMETERS = ("body.mass", "shape.friction", "drive.stiffness")
SCENE = Path(__file__).resolve().parents[2] / "scenes" / "quadruped.usda"


@pytest.fixture(scope="module")
def program():
    model = compile_model(read_usd(SCENE), worlds=WORLDS)
    model.require_gradients(list(PARAMETERS))
    Derivation(model).run()
    return RigidProgram(model, controls=("drive_target",), outputs=("contact_count",))


def _gradient(program, **options):
    model = program.model
    tape = CheckpointedTape(program, steps=STEPS, **options)
    rng = np.random.default_rng(0)
    targets = np.broadcast_to(model.described["drive.target"], (STEPS, WORLDS, model.nd)) + 0.1 * rng.normal(
        size=(STEPS, WORLDS, 1)
    )
    state = {
        "q": np.tile(model.initial_q, (WORLDS, 1)) + 1e-3 * rng.normal(size=(WORLDS, 1)),
        "qd": 0.1 * rng.normal(size=(WORLDS, model.nv)),
        "warm_start": np.zeros((WORLDS, model.nv)),
    }
    run = tape.forward(state, {"drive_target": np.ascontiguousarray(targets)}, keep_outputs=["contact_count"])
    touched = run.outputs["contact_count"].numpy()
    seed = rng.normal(size=(STEPS + 1, WORLDS, model.nq))
    gradients = tape.backward(run, state_seeds={"q": seed})
    found = {**gradients.initial_state, **gradients.inputs}
    physical = {name: model.physical[name].grad for name in ("body.mass", "pair.friction", "drive.stiffness")}
    return touched, {name: array.numpy().copy() for name, array in {**found, **physical}.items()}


@pytest.fixture(scope="module")
def expected(program):
    touched, found = _gradient(program, memory=Memory(schedule=FullTape()))
    assert touched.max() >= 4
    assert all(np.abs(value).max() > 0 for value in found.values())
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"memory": Memory(segment=1)},
        {"memory": Memory(segment=5)},
        {"memory": Memory(segment=40)},
        {"memory": Memory(segment=4, schedule=AllStarts())},
        {"memory": Memory(segment=3, schedule=Revolve(2))},
        {"memory": Memory(segment=6, storage="disk")},
        {"memory": Memory(segment=7), "threads": 2},
        {"memory": Memory(segment=5), "capture": False},
    ],
    ids=str,
)
def test_same_bits(program, expected, options):
    _, found = _gradient(program, **options)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
