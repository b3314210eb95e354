"""Makes the notebooks in `examples/notebooks` from the cells below and executes them, so that their outputs are fresh.

Run `python tools/make_notebooks.py` for all, or name some: `python tools/make_notebooks.py first_gradient`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "notebooks"

NOTEBOOKS = {
    "first_gradient": [
        """# A first gradient

A ball is thrown and bounces. How must it be thrown to land elsewhere? The simulator answers by differentiating the
whole flight, bounce included.""",
        """import torch

import warpsim as ws

sim = ws.Simulator(ws.example_scene("bounce"))
sim""",
        "The initial velocity is an ordinary torch tensor that wants a gradient.",
        """throw = sim.state.qd[0].clone()
throw[:3] = torch.tensor([1.0, 0.0, -1.0])
throw.requires_grad_()
flight = sim.rollout(400, qd=throw)
landing = flight.body_position("/World/Ball")[-1, 0]
landing[0].backward()
print("it ends at", landing.detach().tolist())
print("and its x changes by", throw.grad[:3].tolist(), "per m/s")""",
        "Is that right? Central differences say the same.",
        """def end(vx: float) -> float:
    changed = throw.detach().clone()
    changed[0] = vx
    with torch.no_grad():
        return float(sim.rollout(400, qd=changed).body_position("/World/Ball")[-1, 0, 0])


step = 1e-4
difference = (end(1.0 + step) - end(1.0 - step)) / (2 * step)
print(difference)
assert abs(difference - float(throw.grad[0])) < 1e-5""",
        "The motion, in a viewer that starts when it is unfolded; and its curves.",
        "flight",
        'sim.rollout(400, qd=throw.detach(), outputs=("kinetic_energy", "potential_energy")).plot("energy")',
    ],
    "optimize_a_task": [
        """# Optimize a USD task

`throw.usda` is an ordinary USD scene with one prim more: a `WarpsimTask` that says what may vary and what is wanted.
`ws.optimize` finds values for the file's own attributes.""",
        """import warpsim as ws

scene = ws.example_scene("throw")
text = scene.read_text()
print(text[text.index("def WarpsimTask") :])""",
        "The search runs on exact gradients. What it found is a table of attributes, before and after.",
        """solved = ws.optimize(scene)
assert solved.solved
solved""",
        "How the loss fell:",
        """for entry in solved.result.history:
    print(f"{entry.iteration:3d}  {entry.loss:.3e}")""",
        """A folder keeps everything: the solved scene for any USD viewer, a record for `warpsim replay` and `plot`,
and `result.html`, where the search can be watched.""",
        """import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
for path in solved.save(folder, film=False):
    print(Path(path).name)""",
    ],
    "identify_a_robot": [
        """# Identify a robot

A pendulum in the laboratory is more damped, and heavier, than its model says. Recordings of three swings tell by how
much, and how sure one can be.""",
        """import numpy as np

import warpsim as ws

MODEL = \"\"\"<mujoco><option timestep="0.005"/><worldbody>
  <body name="bob"><joint name="hinge" axis="0 1 0" damping="0.2"/>
    <geom type="sphere" size="0.06" pos="0 0 -.5" rgba=".9 .5 .2 1"/>
    <geom type="capsule" size="0.01" fromto="0 0 0 0 0 -.5" mass="0"/>
    <inertial pos="0 0 -.5" mass="1" diaginertia=".05 .05 .01"/></body>
</worldbody></mujoco>\"\"\"
import tempfile
from pathlib import Path

scene = Path(tempfile.mkdtemp()) / "pendulum.xml"
scene.write_text(MODEL)
laboratory, rng = ws.Simulator(scene), np.random.default_rng(0)
laboratory""",
        "The laboratory stands here as a simulator with another damping, and with noise of 0.01 rad on its encoder.",
        """recordings = []
for k, speed in enumerate((1.0, 2.0, 3.0)):
    swing = laboratory.rollout(steps=200, qd=[speed], parameters={"joint.damping": [0.35]})
    angles = swing.q[:, 0].numpy() + rng.normal(0.0, 0.01, (201, 1))
    recordings.append(
        ws.Recording(f"swing {k}", swing.times, {"joint:hinge": angles}, q0=np.zeros(1), qd0=np.array([speed]))
    )
swing""",
        """fit = ws.identify(
    recordings,
    scene,
    [ws.Parameter("joint.damping:hinge", lower=0.01, upper=2.0)],
    noise={"joint:hinge": 0.01},
)
print(fit)
assert abs(fit.values[0] - 0.35) < 0.01""",
        "The model with the value that was found swings as it was measured:",
        """fitted = laboratory.rollout(steps=200, qd=[3.0], parameters={"joint.damping": fit.values[:1]})
print("largest difference:", float(np.abs(fitted.q[:, 0].numpy() - angles).max()), "rad")
fitted.plot("joints")""",
    ],
}
"""Name → cells; those that begin with a heading, or that are a sentence, are text."""


def is_text(cell: str) -> bool:
    """Whether a cell is prose."""
    return cell.startswith("#") or (cell[0].isupper() and cell.rstrip()[-1] in ".:")


def notebook(name: str) -> nbformat.NotebookNode:
    """A notebook without outputs."""
    made = nbformat.v4.new_notebook()
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate(NOTEBOOKS[name]):
        make = nbformat.v4.new_markdown_cell if is_text(cell) else nbformat.v4.new_code_cell
        made.cells.append(make(cell, id=f"cell-{number}"))
    return made


def without_the_machine(cell: nbformat.NotebookNode) -> None:
    """Takes out of a cell what another machine would say otherwise: time stamps, warnings, addresses and folders."""
    cell.get("metadata", {}).pop("execution", None)
    if "outputs" not in cell:
        return
    cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    for output in cell.outputs:
        if "text/html" in output.get("data", {}):
            output.data.pop("text/plain", None)


def main() -> None:
    """Makes and executes."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or NOTEBOOKS:
        made = notebook(name)
        NotebookClient(made, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
        for cell in made.cells:
            without_the_machine(cell)
        path = FOLDER / f"{name}.ipynb"
        nbformat.write(made, path)
        print(f"wrote {path.relative_to(ROOT)} ({path.stat().st_size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
