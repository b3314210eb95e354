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
    """States, controls and contacts of every step are kept, as a tape needs them; both passes are captured graphs."""

    note = "float32, penalty contacts, one tape over all steps, captured as its examples do"

    def __init__(self, case: Mapping[str, Any]) -> None:
        host = mujoco.MjModel.from_xml_path(case["model"])
        self.timestep = float(host.opt.timestep)
        # motors act on joints: control · gear, at the joint's first dof
        joints = host.actuator_trnid[:, 0]
        self._dofs, self._gear = host.jnt_dofadr[joints], host.actuator_gear[:, 0]
        builder = newton.ModelBuilder()
        builder.add_mjcf(case["model"])
        self._model = builder.finalize(device="cpu", requires_grad=True)
        self._solver = newton.solvers.SolverFeatherstone(self._model)
        self._collisions = newton.CollisionPipeline(self._model, broad_phase="explicit", requires_grad=True)
        steps = len(case["controls"])
        self._states = [self._model.state(requires_grad=True) for _ in range(steps + 1)]
        self._controls = [self._model.control() for _ in range(steps)]
        self._contacts = [self._collisions.contacts() for _ in range(steps)]
        self._place(host, case)
        weights = np.random.default_rng(11).normal(size=self._model.joint_coord_count)
        self._weights = wp.array(weights.astype(np.float32), dtype=float)
        self._loss = wp.zeros(1, dtype=float, requires_grad=True)
        self._forward_graph, self._gradient_graph = self._capture()
        self.memory: float | None = _bytes_on(self._tape) / steps

    def _place(self, host: mujoco.MjModel, case: Mapping[str, Any]) -> None:
        """The start state."""
        q = np.array(case["q"], np.float32)
        if host.nq == self._model.joint_coord_count and host.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
            q[3:7] = np.roll(q[3:7], -1)  # its quaternions have the real part last
        start = self._states[0]
        start.joint_q.assign(q)
        start.joint_qd.assign(np.array(case["qd"], np.float32))
        newton.eval_fk(self._model, start.joint_q, start.joint_qd, start)

    def _run(self) -> None:
        self._loss.zero_()
        for k, control in enumerate(self._controls):
            state, contacts = self._states[k], self._contacts[k]
            state.clear_forces()
            self._collisions.collide(state, contacts)
            self._solver.step(state, self._states[k + 1], control, contacts, self.timestep)
        final = self._states[-1].joint_q
        wp.launch(_final_loss, dim=len(self._weights), inputs=[final, self._weights], outputs=[self._loss])

    def _record(self) -> None:
        self._tape = wp.Tape()
        with self._tape:
            self._run()
        self._tape.backward(self._loss)

    def _capture(self) -> tuple[wp.Graph, wp.Graph]:
        self._record()  # loads the kernels
        self._tape.zero()
        with wp.ScopedCapture("cpu") as forward:
            self._run()
        with wp.ScopedCapture("cpu") as both:
            self._tape.zero()
            self._record()
        return forward.graph, both.graph

    def _assign(self, controls: np.ndarray) -> None:
        for control, values in zip(self._controls, controls, strict=True):
            forces = np.zeros(self._model.joint_dof_count, np.float32)
            np.add.at(forces, self._dofs, self._gear * values)
            control.joint_f.assign(forces)

    def loss(self, controls: np.ndarray) -> float:
        """Forward pass."""
        self._assign(controls)
        wp.capture_launch(self._forward_graph)
        return float(self._loss.numpy()[0])

    def gradient(self, controls: np.ndarray) -> np.ndarray:
        """Reverse mode."""
        self._assign(controls)
        wp.capture_launch(self._gradient_graph)
        return np.stack([c.joint_f.grad.numpy()[self._dofs] * self._gear for c in self._controls])


def _bytes_on(tape: wp.Tape) -> float:
    """Of all arrays that its launches name, and of their gradients, each once."""
    found: dict[int, float] = {}

    def add(value: Any) -> None:
        if isinstance(value, wp.array) and value.ptr:
            found[value.ptr] = float(value.capacity)
            if value.grad is not None:
                add(value.grad)
        elif hasattr(value, "_cls"):  # a struct's instance
            for name in value._cls.vars:
                add(getattr(value, name))

    for launch in tape.launches:
        if not callable(launch):
            for value in [*launch[3], *launch[4]]:
                add(value)
    return sum(found.values())


adapter.main(Featherstone, ("newton", "warp-lang"))
