"""A heap of many bodies: accelerations against MuJoCo, gradients through the sparse Hessian against differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_support import converging
from rigid_support import Rollout, evaluation, scene_of
from row_support import assert_small, check_gradients
from warpsim.solve.sparsity import MIN_TREES

COUNT = 12


def _heap(seed: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Balls of several sizes that have fallen into a pit, and one that lies apart."""
    rng = np.random.default_rng(seed)
    bodies = "".join(
        f'<body pos="{x} {y} {0.15 + 0.1 * i}"><freejoint/><geom size="{r}" density="300"/></body>'
        for i, (x, y, r) in enumerate(np.c_[rng.uniform(-0.1, 0.1, (COUNT - 1, 2)), rng.uniform(0.06, 0.1, COUNT - 1)])
    )
    walls = "".join(
        f'<geom type="plane" size="2 2 .1" pos="{-x} {-y} 0" zaxis="{x} {y} 1"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    xml = (
        '<mujoco><option timestep=".004" cone="elliptic"/><worldbody>'
        f'{walls}{bodies}<body pos="0 0 9"><freejoint/><geom size=".05"/></body></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=500)
    return converging(model), data


def test_accelerations_are_mujocos():
    model, data = _heap(0)
    mujoco.mj_forward(model, data)
    assert data.ncon > COUNT
    scene = scene_of(model)
    scene.options.solver_tolerance = 1e-14
    e = evaluation(scene, {"q": data.qpos[None], "qd": data.qvel[None], "warm_start": 0.0})
    assert e.model.sparsity.trees == COUNT >= MIN_TREES
    c = e.forward().constraint
    ours = c.qdd.numpy()[0]
    assert np.abs(ours - data.qacc).max() < 1e-7 * np.abs(data.qacc).max()


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_gradients_through_a_heap(integrator):
    """Of a heap that is shaken: at rest, most contacts are near a switch."""
    model, data = _heap(1)
    scene = scene_of(model)
    scene.options.solver_tolerance, scene.options.integrator = 1e-13, integrator
    rollout = Rollout(scene, 2, ("joint_force",), ("body.mass",))
    qd = data.qvel[None] + 0.3 * np.random.default_rng(0).normal(size=(1, model.nv))
    inputs = {"q": data.qpos[None].copy(), "qd": qd, "warm_start": np.zeros((1, model.nv))}
    check = check_gradients(rollout, inputs | {**rollout.random_controls(0.01), **rollout.parameter_values()})
    assert {"qd", "joint_force", "body.mass"} <= set(check.errors), check.excluded
    assert_small(check.errors, "gradient", 1e-6)
