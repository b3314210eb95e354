"""The reference: MuJoCo's C engine, one thread, stepping in C without returning to Python."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco import rollout

from tools.bench.cases import LEAST_PUSH, Case, Inputs
from tools.bench.differences import directional_error
from tools.bench.timing import Workload
from warpsim.scene.convergence import MIN_ITERATIONS

_INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}
_SEED = 7


def load(case: Case) -> mujoco.MjModel:
    """The case's model with its integrator, and without constraints where the case is smooth.

    A cap on its solver is raised as ours is, so that both solve the same problem.
    """
    model = mujoco.MjModel.from_xml_path(str(case.path))
    model.opt.integrator = _INTEGRATORS[case.integrator]
    model.opt.iterations = max(model.opt.iterations, MIN_ITERATIONS)
    if not case.contact:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


def make_inputs(case: Case, model: mujoco.MjModel) -> Inputs:
    """Start states and controls of a case: the model's own start, velocities and controls at random, then settled.

    Every world differs, so that a side cannot gain by computing one world.
    """
    rng = np.random.default_rng(_SEED)
    data = mujoco.MjData(model)
    q, qd = np.empty((case.worlds, model.nq)), np.empty((case.worlds, model.nv))
    for world in range(case.worlds):
        mujoco.mj_resetData(model, data)
        data.qvel[:] = rng.uniform(-0.2, 0.2, model.nv)
        mujoco.mj_step(model, data, nstep=case.settle_steps)
        q[world], qd[world] = data.qpos, data.qvel
    controls = rng.uniform(-0.2, 0.2, (case.worlds, case.steps, model.nu))
    return Inputs(q, qd, controls)


def count_contacts(model: mujoco.MjModel, inputs: Inputs) -> float:
    """Contacts at the start, mean over the worlds."""
    data = mujoco.MjData(model)
    counts = []
    for q in inputs.q:
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        counts.append(data.ncon)
    return float(np.mean(counts))


def what_is_wrong(case: Case, model: mujoco.MjModel, inputs: Inputs, final: np.ndarray) -> str:
    """Why a case is not what it says, given its final states (worlds, nq + nv); empty if it is."""
    data = mujoco.MjData(model)
    for world in range(case.worlds):
        places = []
        for q in (inputs.q[world], final[world, : model.nq]):
            data.qpos[:] = q
            mujoco.mj_forward(model, data)
            if data.ncon < case.least_contacts:
                return f"world {world} has {data.ncon} contacts, not {case.least_contacts}"
            places.append(data.body(case.pushed).xpos.copy() if case.pushed else np.zeros(3))
        moved = float(np.linalg.norm(places[1] - places[0]))
        if case.pushed and moved < LEAST_PUSH:
            return f"{case.pushed} moved by {moved:.1e} m, not {LEAST_PUSH} m"
    return ""


def workloads(case: Case, model: mujoco.MjModel, inputs: Inputs) -> list[Workload]:
    """Forward on one thread and, with many worlds, on two; finite-difference gradients of one world."""
    if case.worlds > 1:
        return [forward(case, model, inputs), forward(case, model, inputs, threads=2)]
    return [
        forward(case, model, inputs),
        transition_matrices(case, model, inputs),
        transition_matrices(case, model, inputs, centered=True),
    ]


class TransitionMatrices:
    """`mjd_transitionFD` before every step, and the chain rule backwards over its A and B: a gradient by MuJoCo.

    The loss is a random linear function of the final velocity, whose tangent is itself.
    """

    def __init__(self, case: Case, model: mujoco.MjModel, inputs: Inputs, *, centered: bool) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self.inputs, self.centered = inputs, centered
        size = 2 * model.nv + model.na
        self._a, self._b = np.empty((case.steps, size, size)), np.empty((case.steps, size, model.nu))
        self._weights = np.zeros(size)
        self._weights[model.nv : 2 * model.nv] = np.random.default_rng(_SEED).normal(size=model.nv)
        self.gradient = np.full((case.steps, model.nu), np.nan)

    def run(self) -> None:
        """All steps forward, all steps back."""
        self._start()
        for k, control in enumerate(self.inputs.controls[0]):
            self.data.ctrl[:] = control
            mujoco.mjd_transitionFD(self.model, self.data, 1e-6, self.centered, self._a[k], self._b[k], None, None)
            mujoco.mj_step(self.model, self.data)
        along = self._weights
        for k in range(len(self._a) - 1, -1, -1):
            self.gradient[k] = self._b[k].T @ along
            along = self._a[k].T @ along

    def final(self) -> np.ndarray:
        """(1, nq + nv) at the end of the last run."""
        return np.concatenate([self.data.qpos, self.data.qvel])[None]

    def gradient_error(self) -> float:
        """Relative, along one random direction, against central differences of MuJoCo's own steps."""
        steps = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
        error = directional_error(self.gradient, self.inputs.controls[0], self._loss, steps=steps, seed=_SEED + 1)
        self.run()  # the final state is again that of the controls themselves
        return error

    def _start(self) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.inputs.q[0], self.inputs.qd[0]

    def _loss(self, controls: np.ndarray) -> float:
        self._start()
        for control in controls:
            self.data.ctrl[:] = control
            mujoco.mj_step(self.model, self.data)
        return float(self._weights[self.model.nv : 2 * self.model.nv] @ self.data.qvel)


def transition_matrices(case: Case, model: mujoco.MjModel, inputs: Inputs, *, centered: bool = False) -> Workload:
    """What a gradient by MuJoCo costs."""
    differences = TransitionMatrices(case, model, inputs, centered=centered)
    label = "mujoco finite differences" + (", centered" if centered else "")
    return Workload(label, differences.run, differences.final, differences.gradient_error)


def forward(case: Case, model: mujoco.MjModel, inputs: Inputs, *, threads: int = 1) -> Workload:
    """`mj_step` over all worlds and steps, through MuJoCo's native rollout."""
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    data = mujoco.MjData(model)
    pool = [data, *(mujoco.MjData(model) for _ in range(threads - 1))]
    start = np.empty((case.worlds, mujoco.mj_stateSize(model, spec)))
    for world in range(case.worlds):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = inputs.q[world], inputs.qd[world]
        mujoco.mj_getState(model, data, start[world], spec)
    # Outputs are allocated once: the time is the engine's, not the allocator's.
    states = np.full((case.worlds, case.steps, start.shape[1]), np.nan)
    sensors = np.empty((case.worlds, case.steps, model.nsensordata))

    def run() -> None:
        rollout.rollout(model, pool, start, inputs.controls, state=states, sensordata=sensors)

    def final_state() -> np.ndarray:
        return states[:, -1, 1 : 1 + model.nq + model.nv]  # after the time

    label = "mujoco forward" + (f", {threads} threads" if threads > 1 else "")
    return Workload(label, run, final_state, threads=threads)
