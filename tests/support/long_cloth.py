"""A cloth that swings for ten seconds, differentiated; prints by how much the process grew, in bytes.

python long_cloth.py SIDE STEPS BUDGET
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from deformable_support import grid_sheet
from warpsim.deformable.description import Matter, Sheet
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram
from warpsim.tape import CheckpointedTape, Memory


def resident(field: str) -> int:
    """Resident memory of this process, bytes: "VmRSS" now, "VmHWM" at most so far."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def differentiate(side: int, steps: int, budget: str) -> np.ndarray:
    """The gradient of a form of where the cloth is at last by where its points are at first."""
    points, triangles = grid_sheet(side, side, 1.0, 1.0)
    sheet = Sheet(triangles, young=1e5, thickness=1e-3, density=300.0, damping=0.01, bending=5.0)
    model = build(Matter(points, [sheet], fixed=[0, side - 1]), time_step=0.01, mass_damping=0.2)
    program = DeformableProgram(model)
    tape = CheckpointedTape(program, steps=steps, memory=Memory(budget))
    seed = np.random.default_rng(0).standard_normal((1, len(points), 3))
    run = tape.forward(program.initial_state())
    return tape.backward(run, state_seeds={"x": {-1: seed}}).initial_state["x"].numpy()


def main(side: int, steps: int, budget: str) -> None:
    """Loads the kernels with a small cloth, so that code does not count, then measures."""
    differentiate(4, 3, budget)
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # the peak counts from here
    before = resident("VmRSS")
    found = differentiate(side, steps, budget)
    assert np.isfinite(found).all()
    assert np.abs(found).max() > 0.0
    print(resident("VmHWM") - before)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
