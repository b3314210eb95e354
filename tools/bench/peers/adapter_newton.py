"""Newton: its Featherstone solver, the one that differentiates articulations, on one tape over all steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import adapter
import mujoco
import newton
import numpy as np
import warp as wp

wp.config.quiet = True


@wp.kernel
def _final_loss(q: wp.array(dtype=float), weights: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, weights[i] * q[i])


class Featherstone:
    """States, controls and contacts of every step are kept, as a tape needs them."""

    note = "float32, penalty contacts, one tape over all steps, launched eagerly as its examples do on a CPU"

    def __init__(self, case: Mapping[str, Any]) -> None:
        host = mujoco.MjModel.from_xml_path(case["model"])
        self.timestep = float(host.opt.timestep)
        self.memory: float | None = None
        # motors act on joints: control · gear, at the joint's first dof
        joints = host.actuator_trnid[:, 0]
        self._dofs, self._gear = host.jnt_dofadr[joints], host.actuator_gear[:, 0]
        builder = newton.ModelBuilder()
        builder.add_mjcf(case["model"])
        self._model = builder.finalize(device="cpu", requires_grad=True)
        self._solver = newton.solvers.SolverFeatherstone(self._model)
        steps = len(case["controls"])
        self._states = [self._model.state(requires_grad=True) for _ in range(steps + 1)]
        self._controls = [self._model.control(requires_grad=True) for _ in range(steps)]
        q = np.array(case["q"], np.float32)
        if host.nq == self._model.joint_coord_count and host.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
            q[3:7] = np.roll(q[3:7], -1)  # its quaternions have the real part last
        self._states[0].joint_q.assign(q)
        self._states[0].joint_qd.assign(np.array(case["qd"], np.float32))
        newton.eval_fk(self._model, self._states[0].joint_q, self._states[0].joint_qd, self._states[0])
        weights = np.random.default_rng(11).normal(size=self._model.joint_coord_count)
        self._weights = wp.array(weights.astype(np.float32), dtype=float)
        self._loss = wp.zeros(1, dtype=float, requires_grad=True)

    def _run(self, controls: np.ndarray) -> None:
        self._loss.zero_()
        for control, values in zip(self._controls, controls, strict=True):
            forces = np.zeros(self._model.joint_dof_count, np.float32)
            np.add.at(forces, self._dofs, self._gear * values)
            control.joint_f.assign(forces)
        for k, control in enumerate(self._controls):
            state, following = self._states[k], self._states[k + 1]
            state.clear_forces()
            contacts = self._model.collide(state)
            self._solver.step(state, following, control, contacts, self.timestep)
        final = self._states[-1].joint_q
        wp.launch(_final_loss, dim=len(self._weights), inputs=[final, self._weights], outputs=[self._loss])

    def loss(self, controls: np.ndarray) -> float:
        """Forward pass."""
        self._run(controls)
        return float(self._loss.numpy()[0])

    def gradient(self, controls: np.ndarray) -> np.ndarray:
        """Reverse mode."""
        with wp.Tape() as tape:
            self._run(controls)
        tape.backward(self._loss)
        found = np.stack([c.joint_f.grad.numpy()[self._dofs] * self._gear for c in self._controls])
        tape.zero()
        return found


adapter.main(Featherstone, ("newton", "warp-lang"))
