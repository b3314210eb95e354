"""A mesh that was put down lies still: on a plane, on a box, on another mesh.

So it does in MuJoCo, but on the plane: there its four points of a foot with more corners change with the lowest of
them, and it rocks at 1e-3 to 1e-2 rad/s.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape.checkpointed import CheckpointedTape

SECONDS = 10.0
_STEP = 0.004
_STILL = 1e-4
"""rad/s"""


def stone(seed: int) -> str:
    """Vertices of an irregular solid with a flat, eleven-sided foot."""
    rng = np.random.default_rng(seed)
    turn = np.sort(rng.uniform(0, 2 * np.pi / 11, size=11)) + np.arange(11) * 2 * np.pi / 11
    foot = np.stack([0.1 * np.cos(turn), 0.08 * np.sin(turn), np.full(11, -0.05)], axis=1)
    top = rng.normal(size=(14, 3)) * [0.05, 0.05, 0.015] + [0.0, 0.0, 0.04]
    return " ".join(repr(float(x)) for x in np.concatenate([foot, top]).ravel())


def model_on(ground: str) -> mujoco.MjModel:
    below = {
        "plane": '<geom type="plane" size="1 1 1"/>',
        "box": '<geom type="box" size=".3 .3 .1" pos="0 0 -.1"/>',
        "mesh": '<geom type="mesh" mesh="table" pos="0 0 -.1"/>',
    }[ground]
    table = " ".join(f"{x} {y} {z}" for x in (-0.3, 0.3) for y in (-0.2, 0.25) for z in (-0.1, 0.1))
    return mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{_STEP}" cone="elliptic"/>
    <asset><mesh name="stone" vertex="{stone(3)}"/><mesh name="table" vertex="{table}"/></asset>
    <worldbody>{below}<body pos="0.01 0.02 0.06" euler="2 -3 20"><freejoint/>
    <geom type="mesh" mesh="stone" density="900"/></body></worldbody></mujoco>""")


@pytest.mark.parametrize("ground", ["plane", "box", "mesh"])
def test_a_mesh_lies_still(ground):
    model = model_on(ground)
    compiled = compile_model(scene_from_mjmodel(model))
    Derivation(compiled).run()
    steps = round(SECONDS / _STEP)
    tape = CheckpointedTape(RigidProgram(compiled, controls=()), steps=steps)
    start = {"q": compiled.initial_q[None], "qd": compiled.initial_qd[None], "warm_start": np.zeros((1, 6))}
    with tape.forward(start, keep_states=["q", "qd"], keep_every=10, differentiate=False) as run:
        speeds, height = run.states["qd"].numpy()[:, 0, 3:], run.states["q"].numpy()[-1, 0, 2]
    data = mujoco.MjData(model)
    turning = []
    for _ in range(steps):
        mujoco.mj_step(model, data)
        turning.append(np.abs(data.qvel[3:]).max())
    half = len(turning) // 2
    assert max(turning[half:]) < (1e-2 if ground == "plane" else _STILL)
    assert np.abs(speeds[len(speeds) // 2 :]).max() < _STILL
    assert np.abs(speeds[1:]).max() > 0.1  # it did fall over its foot first
    assert height == pytest.approx(data.qpos[2], abs=2e-5)
