"""Figures of runs: the numbers in them are those of the run."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from PIL import Image

from warpsim.check.records import read_record
from warpsim.cli.commands.plot import record_curves
from warpsim.cli.main import main
from warpsim.core.errors import InputError, UnknownNameError
from warpsim.core.registry import provided
from warpsim.sim.simulator import Simulator
from warpsim.view.plots.curves import Curves, History

pytest.importorskip("matplotlib", reason="matplotlib draws the plots")
to_rgb = importlib.import_module("matplotlib.colors").to_rgb
COLORS = importlib.import_module("warpsim.view.plots.figure").COLORS

OUTPUTS = ("kinetic_energy", "potential_energy", "contact_count", "solver_iterations")


@pytest.fixture(scope="module")
def rollout(request):
    sim = Simulator(request.config.rootpath / "scenes" / "hopper.usda", worlds=2)
    return sim.rollout(60, outputs=OUTPUTS)


def panel(figure, kind: str):
    return next(axes for axes in figure.axes if axes.get_label() == kind)


def lines(axes) -> dict[str, np.ndarray]:
    return {line.get_label(): np.asarray(line.get_ydata()) for line in axes.get_lines()}


def test_a_trajectory_shows_its_own_numbers(rollout):
    figure = rollout.plot()
    assert [axes.get_label() for axes in figure.axes if axes.get_label() in ("joints", "energy", "contacts", "solver")]
    angles = lines(panel(figure, "joints"))
    hidden = [axes for axes in figure.axes if axes.get_ylabel().startswith("dashed")]
    angles |= {k: v for axes in hidden for k, v in lines(axes).items()}
    assert np.array_equal(angles["Knee"], rollout.joint_position("/World/Torso/Thigh/Leg/Knee")[:, 0, 0].numpy())
    energy = lines(panel(figure, "energy"))
    kinetic = rollout.numpy("kinetic_energy").reshape(61, 2)
    assert np.array_equal(energy["kinetic"], kinetic[:, 0]) and np.array_equal(energy["_kinetic"], kinetic[:, 1])
    assert energy["sum"] == pytest.approx(kinetic[:, 0] + rollout.numpy("potential_energy").reshape(61, 2)[:, 0])
    edges = np.asarray(panel(figure, "contacts").collections[0].get_coordinates())[0, :, 0]
    centers = 0.5 * (edges[:-1] + edges[1:])  # each count stands over its own time
    assert centers == pytest.approx(rollout.times, abs=1e-12)
    counts = panel(figure, "contacts").collections[0].get_array()
    assert np.array_equal(np.ma.filled(counts, 0.0).T.reshape(61, 2), rollout.numpy("contact_count").reshape(61, 2))
    assert (rollout.numpy("contact_count") > 0).any()
    solver = lines(panel(figure, "solver"))["maximum"]
    assert np.array_equal(solver, rollout.numpy("solver_iterations").reshape(61, 2).max(axis=1))


def test_the_fill_below_a_curve_has_its_color_and_the_mean_another():
    figure = provided("plot")(Curves("run", np.arange(3.0), iterations=np.array([[1, 3], [2, 2], [5, 0]])), ["solver"])
    axes = panel(figure, "solver")
    highest, mean = axes.get_lines()
    assert (highest.get_label(), highest.get_ydata().tolist()) == ("maximum", [3.0, 2.0, 5.0])
    assert (mean.get_label(), mean.get_ydata().tolist()) == ("mean of worlds", [2.0, 2.0, 2.5])
    assert to_rgb(highest.get_color()) == to_rgb(COLORS[0]) == pytest.approx(axes.collections[0].get_facecolor()[0, :3])
    assert to_rgb(mean.get_color()) == to_rgb(COLORS[1])
    assert axes.get_ylim()[0] == 0.0
    one = provided("plot")(Curves("run", np.arange(3.0), iterations=np.array([[1], [2], [5]])), ["solver"])
    assert list(lines(panel(one, "solver"))) == ["maximum"]


def test_panels_can_be_chosen_and_saved(rollout, tmp_path):
    figure = rollout.plot("energy", worlds=[1])
    assert [axes.get_label() for axes in figure.axes] == ["energy"]
    first = figure.save(tmp_path / "energy.svg").read_bytes()
    assert first == rollout.plot("energy", worlds=[1]).save(tmp_path / "again.svg").read_bytes()
    assert figure._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(UnknownNameError, match="energy"):
        rollout.plot("energi")
    with pytest.raises(InputError, match="search"):
        rollout.plot("loss")
    with pytest.raises(InputError, match="world=7"):
        rollout.plot(worlds=[7])
    with pytest.raises(InputError, match=r"\.png"):
        figure.save(tmp_path / "energy.bmp")


def test_losses_and_gradients():
    history = History(np.arange(4.0), np.array([4.0, 1.0, 2.0, 0.5]), np.array([1.0, 0.5, 0.2, np.nan]))
    curves = Curves("search", np.zeros(0), history=history, gradients={"/A.mass": 2.0, "/B.mass": 0.5})
    figure = provided("plot")(curves, None)
    shown = lines(panel(figure, "loss"))
    assert shown["best so far"].tolist() == [4.0, 1.0, 1.0, 0.5]
    assert panel(figure, "loss").get_yscale() == "log"
    assert [bar.get_width() for bar in panel(figure, "gradients").patches] == [2.0, 0.5]
    with pytest.raises(InputError, match="nothing to plot"):
        provided("plot")(Curves("empty", np.zeros(0)), None)


def test_the_command_draws_a_record(tmp_path, request, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scene = str(request.config.rootpath / "scenes" / "hopper.usda")
    assert main(["simulate", scene, "--steps", "20", "--record", "run.json", "--quiet"]) == 0
    assert main(["plot", "run.json"]) == 0
    assert "wrote run.png" in capsys.readouterr().out
    with Image.open("run.png") as picture:
        assert picture.width > 500
    record = read_record("run.json")
    curves = record_curves(record)
    assert {c.name for c in curves.joints} >= {"Hip", "Knee", "Ankle"}
    knee = next(c for c in curves.joints if c.name == "Knee")
    place = record.names["joint"].index("/World/Torso/Thigh/Leg/Knee")
    assert np.array_equal(knee.values, np.asarray(record.trajectory["q"])[:, :, place])
    assert curves.iterations is not None
    assert main(["plot", "run.json"]) == 1  # it is there already
    assert main(["plot", "run.json", "-o", "loss.png", "--what", "loss"]) == 1
