"""Tables and plots of horizons and sizes, from small results; the models of the sweeps are what they say."""

import json
import sys

import mujoco
import numpy as np
import pytest

from tools.bench import horizons, mujoco_side, plots, scaling
from tools.bench.cases import CASES, Case
from tools.bench.horizons import Horizon
from tools.bench.scaling import Point

HORIZONS = [
    Horizon("warpsim", "humanoid-ground", 10, 50.0, 120.0, 2e6, 1e6, 1e-3, 1e-9),
    Horizon("warpsim", "humanoid-ground", 100, 50.0, 120.0, 6e6, 2e6, 1e-2, 1e-8),
    Horizon("warpsim", "humanoid-ground", 1000, 50.0, 120.0, 6e6, 2e6, 1e20, 1.0),
    Horizon("Newton", "humanoid-ground", 10, 900.0, 4000.0, 1e6, note="float32"),
    Horizon("Newton", "humanoid-ground", 100, 900.0, 4000.0, 1e7, note="float32"),
]


def sizes() -> list[Point]:
    """Two threads are worth 1.6."""
    rows = []
    for label in ("mujoco forward", "warpsim forward", "warpsim gradient"):
        rows += [Point("worlds", 4, label, threads, 40.0 / (1.6 if threads == 2 else 1.0), 0.0) for threads in (1, 2)]
        rows += [Point(sweep, n, label, 1, 2.0 * n, 0.0) for sweep in ("dofs", "bodies", "contacts") for n in (4, 8)]
    return rows


def test_tables():
    text = horizons.to_markdown(HORIZONS, "8MB")
    assert "| warpsim | humanoid-ground | 100 | 50 | 120 | 6.00 | 2.0 | 1.0e-02 | 1e-08 |" in text
    assert "| Newton | humanoid-ground | 100 | 900 | 4000 | 10.00 | – | – | – |" in text
    assert text.count("Newton: float32.") == 1
    assert "| 1.0e+20 | chaotic |" in text
    assert scaling.efficiency(sizes(), "warpsim gradient", 4) == pytest.approx(0.8)
    text = scaling.to_markdown(sizes())
    assert "| 4 | 25,000 | 40,000 | 0.80 |" in text
    assert "| contacts | 8 | 16.0 | 16.0 | 16.0 |" in text


def test_plots_hold_the_numbers(tmp_path, monkeypatch):
    """One command makes all images; each curve is the measured one."""
    found = {"budget": "8MB", "rows": [row.__dict__ for row in HORIZONS]}
    swept = {"rows": [row.__dict__ for row in sizes()]}
    memory, time, error = plots.plot_horizons(found).axes
    curves = {line.get_label(): line.get_xydata().tolist() for line in memory.lines}
    assert curves["Newton, humanoid"] == [[10.0, 1.0], [100.0, 10.0]]
    assert {line.get_label(): line.get_ydata()[1] for line in time.lines}["warpsim, humanoid"] == pytest.approx(0.012)
    assert [(line.get_label(), len(line.get_xdata())) for line in error.lines] == [("warpsim, humanoid", 2)]
    curves = {line.get_label(): line.get_ydata() for line in plots.plot_throughput(swept).axes[1].lines}
    np.testing.assert_allclose(curves["warpsim, 2 threads"], 40_000)
    files = {}
    for name, content in (("horizons", found), ("scaling", swept)):
        files[name] = tmp_path / f"{name}.json"
        files[name].write_text(json.dumps(content))
    arguments = [f"--{name}={path}" for name, path in files.items()]
    monkeypatch.setattr(sys, "argv", ["plots", *arguments, f"--images={tmp_path}"])
    assert plots.main() == 0
    assert {p.name for p in tmp_path.glob("*.png")} == {
        "bench_horizons.png",
        "bench_throughput.png",
        "bench_sizes.png",
    }


@pytest.mark.parametrize("count", [4, 16])
def test_models_of_the_sweeps(count):
    chain = mujoco.MjModel.from_xml_string(scaling.chain_xml(count))
    bodies = mujoco.MjModel.from_xml_string(scaling.bodies_xml(count))
    plate = mujoco.MjModel.from_xml_string(scaling.contacts_xml(count))
    assert (chain.nv, bodies.nv, bodies.nbody, plate.nv) == (count, 6 * count, count + 1, 6)
    data = mujoco.MjData(plate)
    mujoco.mj_forward(plate, data)
    assert data.ncon == count


@pytest.mark.parametrize("name", ["quadruped-ground", "arm-object"])
def test_own_models_do_what_their_case_says(name):
    case = CASES[name]
    model = mujoco_side.load(case)
    inputs = mujoco_side.make_inputs(case, model)
    forward = mujoco_side.forward(case, model, inputs)
    forward.run()
    final = forward.final_state()
    assert mujoco_side.what_is_wrong(case, model, inputs, final) == ""
    assert "contacts" in mujoco_side.what_is_wrong(
        Case(name, case.model, 1, case.steps, least_contacts=50), model, inputs, final
    )
    if case.pushed:
        still = np.concatenate([inputs.q, inputs.qd], axis=1)
        assert "moved by" in mujoco_side.what_is_wrong(case, model, inputs, still)


def test_mujocos_own_gradient_is_right():
    """The chain of its A and B against central differences of its steps."""
    template = CASES["quadruped-ground"]
    case = Case("short", template.model, 1, 5, template.integrator, contact=True, settle_steps=50)
    model = mujoco_side.load(case)
    differences = mujoco_side.TransitionMatrices(case, model, mujoco_side.make_inputs(case, model), centered=True)
    differences.run()
    assert differences.gradient_error() < 1e-6
