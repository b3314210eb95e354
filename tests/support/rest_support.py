"""Where a body ends that comes to rest on another."""

from __future__ import annotations

import numpy as np

from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Scene
from warpsim.tape.checkpointed import CheckpointedTape


def end_of(scene: Scene, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Body positions (n, 3) and velocities (n, 6) of free bodies after a while."""
    model = compile_model(scene)
    Derivation(model).run()
    steps = round(seconds / scene.options.timestep)
    tape = CheckpointedTape(RigidProgram(model, controls=()), steps=steps)
    start = {"q": model.initial_q[None], "qd": model.initial_qd[None], "warm_start": np.zeros((1, model.nv))}
    with tape.forward(start, keep_states=True, keep_every=steps, differentiate=False) as run:
        q, qd = run.states["q"].numpy()[-1, 0], run.states["qd"].numpy()[-1, 0]
    return q.reshape(-1, 7)[:, :3], qd.reshape(-1, 6)
