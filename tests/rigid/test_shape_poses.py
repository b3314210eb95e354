"""World poses of shapes against MuJoCo, and their derivatives against central differences."""

from __future__ import annotations

from contextlib import nullcontext

import mujoco
import numpy as np
import warp as wp

from finite_differences import central_difference, relative_error
from random_models import random_mjcf, random_state
from warpsim.core.precision import numpy_real, real
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.dynamics.kinematics import kinematics
from warpsim.rigid.dynamics.shape_poses import collision_input, shape_poses
from warpsim.rigid.work.state import make_work
from warpsim.tape.arena import Arena, ArenaSize
from warpsim.tape.program import Arrays


class PoseBench:
    """Kinematics and shape poses of a random model, as functions of q and of the authored parameters."""

    def __init__(self, seed: int, parameters: tuple[str, ...] = ()):
        self.mj = mujoco.MjModel.from_xml_string(random_mjcf(seed, bodies=4, contacts=True))
        self.mj.opt.disableflags = 0
        self.model = compile_model(scene_from_mjmodel(self.mj))
        self.model.require_gradients(list(parameters))
        self.derivation = Derivation(self.model)
        self.q = random_state(self.mj, seed).qpos
        self.work = make_work(self.model, Arena(self.model.device, ArenaSize(), None, None))

    def run(self, tape: wp.Tape | None = None) -> tuple[np.ndarray, np.ndarray]:
        model, work = self.model, self.work
        self.state = Arrays(
            "state",
            {
                "q": wp.array(self.q[None].astype(numpy_real), dtype=real, requires_grad=True),
                "qd": wp.zeros((1, model.nv), dtype=real),
            },
        )
        work.shape_position.fill_(np.nan)
        work.shape_rotation.fill_(np.nan)
        self.derivation.run(record=tape is not None)
        with nullcontext() if tape is None else tape:
            kinematics(model, self.state, work)
            shape_poses(model, work)
        return work.shape_position.numpy()[0], work.shape_rotation.numpy()[0]


def test_same_as_mujoco():
    for seed in (1, 2, 3):
        bench = PoseBench(seed)
        position, rotation = bench.run()
        data = mujoco.MjData(bench.mj)
        data.qpos[:] = bench.q
        mujoco.mj_kinematics(bench.mj, data)
        np.testing.assert_allclose(position, data.geom_xpos, atol=1e-12)
        for k in range(bench.mj.ngeom):
            matrix = np.empty(9)
            mujoco.mju_quat2Mat(matrix, rotation[k])
            np.testing.assert_allclose(matrix, data.geom_xmat[k], atol=1e-12)
        shapes = collision_input(bench.model, bench.work)
        assert shapes.position is bench.work.shape_position and shapes.size is bench.model.shape.size


def test_gradients():
    names = ("shape.position", "shape.rotation", "body.position")
    bench = PoseBench(2, names)
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=v.shape) for v in bench.run()]

    def loss(array: wp.array | None, value: np.ndarray) -> float:
        if array is None:
            old, bench.q = bench.q, value
        else:
            old = array.numpy().copy()
            array.assign(np.ascontiguousarray(value))
        result = sum(float((w * v).sum()) for w, v in zip(weights, bench.run(), strict=True))
        if array is None:
            bench.q = old
        else:
            array.assign(old)
        return result

    tape = wp.Tape()
    bench.run(tape)
    bench.work.shape_position.grad.assign(weights[0][None].astype(numpy_real))
    bench.work.shape_rotation.grad.assign(weights[1][None].astype(numpy_real))
    tape.backward()
    bench.derivation.backward()
    q_gradient = bench.state.q.grad.numpy()[0]
    gradients = {name: bench.model.authored[name].grad.numpy().copy() for name in names}
    assert relative_error(q_gradient, central_difference(lambda v: loss(None, v), bench.q)) < 1e-7
    for name, gradient in gradients.items():
        array = bench.model.authored[name]
        expected = central_difference(lambda v, a=array: loss(a, v), array.numpy())
        assert relative_error(gradient, expected) < 1e-7, name
