"""Genesis: a differentiable scene on the CPU, joint torques as torch tensors, its implicit contact gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import adapter
import genesis as gs
import mujoco
import numpy as np
import torch


class Differentiable:
    """One world; the loss is a linear function of the final coordinates."""

    note = (
        "float64; forward in its differentiable mode; checkpoints of one window over all steps, "
        "with its own approximate implicit integrator"
    )

    def __init__(self, case: Mapping[str, Any]) -> None:
        host = mujoco.MjModel.from_xml_path(case["model"])
        self.timestep = float(host.opt.timestep)
        torch.set_num_threads(1)
        gs.init(backend=gs.cpu, precision="64", logging_level="error", seed=0)
        options = gs.options.SimOptions(
            dt=self.timestep,
            substeps_local=len(case["controls"]),
            gravity=tuple(host.opt.gravity),
            requires_grad=True,
        )
        self._scene = gs.Scene(sim_options=options, show_viewer=False)
        self._robot = self._scene.add_entity(gs.morphs.MJCF(file=case["model"]))
        self._scene.build()
        self._dofs = host.jnt_dofadr[host.actuator_trnid[:, 0]].tolist()
        self._gear = torch.tensor(host.actuator_gear[:, 0])
        self._q, self._v = torch.tensor(case["q"]), torch.tensor(case["qd"])
        self._weights = torch.tensor(np.random.default_rng(11).normal(size=host.nq))
        self.memory: float | None = _window_bytes(self._scene) / len(case["controls"])

    def _run(self, controls: torch.Tensor) -> torch.Tensor:
        self._scene.reset()
        self._robot.set_qpos(self._q)
        self._robot.set_dofs_velocity(self._v)
        for control in controls:
            self._robot.control_dofs_force(self._gear * control, self._dofs)
            self._scene.step()
        rigid = next(state for state in self._scene.get_state().solvers_state if hasattr(state, "qpos"))
        return self._weights @ rigid.qpos[0]

    def loss(self, controls: np.ndarray) -> float:
        """Forward pass."""
        return float(self._run(torch.tensor(controls)).detach())

    def gradient(self, controls: np.ndarray) -> np.ndarray:
        """Reverse mode."""
        leaf = torch.tensor(controls, requires_grad=True)
        self._run(leaf).backward()
        return leaf.grad.numpy()


def _window_bytes(scene: gs.Scene) -> float:
    """States of the window's steps: their values, their gradients, and the copy that a checkpoint makes."""
    kept = scene.rigid_solver.data_manager.rigid_adjoint_cache
    numbers = sum(np.prod(array.shape) for array in (kept.qpos, kept.dofs_vel, kept.dofs_acc))
    return 3.0 * numbers * np.dtype(np.float64).itemsize


adapter.main(Differentiable, ("genesis-world", "torch"))
