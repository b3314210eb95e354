"""The reference: MuJoCo's C engine, one thread, stepping in C without returning to Python."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco import rollout

from tools.bench.cases import Case, Inputs
from tools.bench.timing import Workload

_INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}
_SEED = 7


def load(case: Case) -> mujoco.MjModel:
    """The case's model with its integrator, and without constraints where the case is smooth."""
    model = mujoco.MjModel.from_xml_path(str(case.path))
    model.opt.integrator = _INTEGRATORS[case.integrator]
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


def workloads(case: Case, model: mujoco.MjModel, inputs: Inputs) -> list[Workload]:
    """Forward on one thread and, with many worlds, on two; finite-difference gradients of one world."""
    if case.worlds > 1:
        return [forward(case, model, inputs), forward(case, model, inputs, threads=2)]
    return [
        forward(case, model, inputs),
        transition_matrices(case, model, inputs),
        transition_matrices(case, model, inputs, centred=True),
    ]


def transition_matrices(case: Case, model: mujoco.MjModel, inputs: Inputs, *, centred: bool = False) -> Workload:
    """`mjd_transitionFD` before every step: what a gradient by MuJoCo costs (A and B of each step)."""
    data = mujoco.MjData(model)
    size = 2 * model.nv + model.na
    a, b = np.empty((size, size)), np.empty((size, model.nu))

    def run() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = inputs.q[0], inputs.qd[0]
        for control in inputs.controls[0]:
            data.ctrl[:] = control
            mujoco.mjd_transitionFD(model, data, 1e-6, centred, a, b, None, None)
            mujoco.mj_step(model, data)

    label = "mujoco finite differences" + (", centred" if centred else "")
    return Workload(label, run, lambda: np.concatenate([data.qpos, data.qvel])[None])


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
