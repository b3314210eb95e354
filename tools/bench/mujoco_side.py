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


def forward(case: Case, model: mujoco.MjModel, inputs: Inputs) -> Workload:
    """`mj_step` over all worlds and steps on one thread, through MuJoCo's native rollout."""
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    data = mujoco.MjData(model)
    start = np.empty((case.worlds, mujoco.mj_stateSize(model, spec)))
    for world in range(case.worlds):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = inputs.q[world], inputs.qd[world]
        mujoco.mj_getState(model, data, start[world], spec)
    # Outputs are allocated once: the time is the engine's, not the allocator's.
    states = np.full((case.worlds, case.steps, start.shape[1]), np.nan)
    sensors = np.empty((case.worlds, case.steps, model.nsensordata))

    def run() -> None:
        rollout.rollout(model, data, start, inputs.controls, state=states, sensordata=sensors)

    def final_state() -> np.ndarray:
        return states[:, -1, 1 : 1 + model.nq + model.nv]  # after the time

    return Workload("mujoco forward", run, final_state)
