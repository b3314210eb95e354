"""warpsim's and MuJoCo's own rows in the peers' table."""

from __future__ import annotations

import time

from tools.bench import mujoco_side
from tools.bench.cases import Case
from tools.bench.peers.run import Row
from tools.bench.report import Result, environment
from tools.bench.warpsim_side import Rollout, bytes_per_step

BUDGET = "16MB"
"""Memory that the account of warpsim's memory per step gives it."""


def own_rows(case: Case, result: Result) -> list[Row]:
    """Both systems on one case, from a run of it."""
    times = {m.label: m.microseconds(m.timing.best, case) for m in result.measurements}
    errors = {m.label: m.gradient_error for m in result.measurements}
    model = mujoco_side.load(case)
    versions = environment()["versions"]
    start = time.process_time()
    rollout = Rollout(case, mujoco_side.make_inputs(case, model))
    rollout.differentiate()
    first = time.process_time() - start
    ours = Row(
        case.name,
        "warpsim",
        times["warpsim forward"],
        times["warpsim gradient"],
        errors["warpsim gradient"],
        bytes_per_step(rollout, BUDGET),
        first,
        float(model.opt.timestep),
        f"converged solver; memory per step from 10,000 to 100,000 steps under a budget of {BUDGET}",
        {"warp-lang": versions["warp-lang"]},
    )
    theirs = Row(
        case.name,
        "MuJoCo",
        times["mujoco forward"],
        times["mujoco finite differences"],
        errors["mujoco finite differences"],
        8.0 * (model.nq + model.nv),
        0.0,
        float(model.opt.timestep),
        "one-sided finite differences of each step; memory: states alone, if differences are taken on the way back",
        {"mujoco": versions["mujoco"]},
    )
    return [ours, theirs]
