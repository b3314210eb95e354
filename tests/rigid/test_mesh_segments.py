"""Mesh robots: segments of any length give the full tape's bits, and nothing of a contact search outlives it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

from rigid_support import evaluation
from tools.zoo.files import model_files
from warpsim.io.mjcf import read_mjcf, scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Scene
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory
from warpsim.tape.schedule import FullTape

ZOO = Path(os.environ.get("WARPSIM_ZOO", Path(__file__).resolve().parents[3] / "shared" / "zoo"))
STEPS = 105
"""Longer than the longest segment."""


def stones(count: int, seed: int) -> Scene:
    """Irregular hulls that fall on each other and on a table of hulls."""
    rng = np.random.default_rng(seed)
    assets, bodies = "", ""
    for i in range(count):
        corners = " ".join(repr(float(x)) for x in (rng.normal(size=(16, 3)) * [0.06, 0.05, 0.04]).ravel())
        assets += f'<mesh name="m{i}" vertex="{corners}"/>'
        bodies += (
            f'<body pos="{0.03 * i} 0.01 {0.1 + 0.09 * i}" euler="{7 * i} 5 {20 * i}"><freejoint/>'
            f'<geom type="mesh" mesh="m{i}" density="900"/></body>'
        )
    table = " ".join(f"{x} {y} {z}" for x in (-0.3, 0.3) for y in (-0.2, 0.25) for z in (-0.1, 0.1))
    return scene_from_mjmodel(
        mujoco.MjModel.from_xml_string(
            f'<mujoco><option timestep="0.004"/><asset>{assets}<mesh name="table" vertex="{table}"/></asset>'
            f'<worldbody><geom type="mesh" mesh="table" pos="0 0 -.05"/>{bodies}</worldbody></mujoco>'
        )
    )


def bits(scene: Scene, memory: Memory, steps: int) -> list[bytes]:
    """Of the last state and of the gradient by the first state and all controls."""
    model = compile_model(scene)
    Derivation(model).run()
    program = RigidProgram(model, controls=("joint_force",))
    tape = CheckpointedTape(program, steps=steps, memory=memory)
    rng = np.random.default_rng(5)
    start = {"q": model.initial_q[None], "qd": 0.1 * rng.normal(size=(1, model.nv))}
    start |= {"warm_start": np.zeros((1, model.nv))} if model.has_constraints else {}
    start |= {"activation": model.initial_activation[None]} if model.na else {}
    push = {"joint_force": 0.01 * rng.normal(size=(steps, 1, model.nv))}
    run = tape.forward(start, push, keep_states=["q", "qd"])
    seeds = {name: rng.normal(size=run.states[name].shape) for name in ("q", "qd")}
    gradients = tape.backward(run, state_seeds=seeds)
    arrays = [*run.states.values(), *gradients.initial_state.values(), *gradients.inputs.values()]
    return [array.numpy().tobytes() for array in arrays]


def assert_same_bits(scene: Scene, steps: int = STEPS) -> None:
    whole = bits(scene, Memory("4GB", schedule=FullTape()), steps)
    for segment in (1, 7, 100):
        assert bits(scene, Memory("4GB", segment=segment), steps) == whole, f"segments of {segment}"


@pytest.mark.parametrize("count,seed", [(1, 0), (3, 1)])
def test_segments_give_the_bits_of_the_full_tape(count, seed):
    assert_same_bits(stones(count, seed))


def _robots() -> Iterator[Path]:
    for path in model_files(ZOO, []) if ZOO.is_dir() else []:
        if mujoco.MjModel.from_xml_path(str(path)).nmesh:
            yield path


@pytest.mark.long
@pytest.mark.skipif(not ZOO.is_dir(), reason="WARPSIM_ZOO names no folder of models")
def test_segments_of_every_mesh_robot_at_hand():
    for path in _robots():
        try:
            assert_same_bits(read_mjcf(path))
        except AssertionError as error:
            raise AssertionError(f"{path}: {error}") from error


def test_nothing_of_a_search_outlives_it():
    """With rubbish in all its scratch before a step, the step finds the same contacts, to the bit."""
    e = evaluation(stones(3, 1), {"warm_start": 0.0})
    e.forward()
    found = [e.work.constraint.contacts.count.numpy().copy(), e.work.constraint.qdd.numpy().tobytes()]
    assert found[0][0] > 0
    search = e.scratch.constraint.search
    for array in (search.pair_count, search.candidate_feature, search.candidate_seed):
        array.fill_(77)
    e.forward()
    again = [e.work.constraint.contacts.count.numpy(), e.work.constraint.qdd.numpy().tobytes()]
    assert again[0].tolist() == found[0].tolist() and again[1] == found[1]
