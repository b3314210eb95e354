"""Panels of plots from made-up curves: which axes, colors, scales and names each number gets."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from warpsim.core.registry import provided
from warpsim.view.plots.curves import Coordinate, Curves, History

pytest.importorskip("matplotlib", reason="matplotlib draws the plots")
to_rgb = importlib.import_module("matplotlib.colors").to_rgb
figure_module = importlib.import_module("warpsim.view.plots.figure")
COLORS, MAXIMUM_CURVES = figure_module.COLORS, figure_module.MAXIMUM_CURVES

TIMES = np.linspace(0.0, 1.0, 5)


def drawn(curves: Curves, *kinds: str):
    figure = provided("plot")(curves, list(kinds) or None)
    return figure, {axes.get_label(): axes for axes in figure.axes if axes.get_label() in kinds}


def line(axes, label: str):
    return next(found for found in axes.get_lines() if found.get_label() == label)


def joints(count: int, worlds: int = 1) -> list[Coordinate]:
    units = ("rad", "m")
    return [Coordinate(f"j{k}", np.full((5, worlds), float(k)), units[k % 2]) for k in range(count)]


def test_coordinates_of_another_unit_stand_dashed_on_the_other_side():
    figure, panels = drawn(Curves("run", TIMES, joints=joints(3, worlds=2)), "joints")
    first = panels["joints"]
    (second,) = [axes for axes in figure.axes if axes is not first]
    assert first.get_ylabel() == "joints, rad" and second.get_ylabel() == "dashed: m"
    assert {found.get_label() for found in first.get_lines()} == {"j0", "_j0", "j2", "_j2"}
    assert {found.get_label() for found in second.get_lines()} == {"j1", "_j1"}
    assert {found.get_linestyle() for found in first.get_lines()} == {"-"}
    assert {found.get_linestyle() for found in second.get_lines()} == {"--"}
    for k, axes in enumerate((first, second, first)):
        assert line(axes, f"j{k}").get_color() == COLORS[k]
        assert line(axes, f"j{k}").get_alpha() == 1.0 and line(axes, f"_j{k}").get_alpha() == 0.35
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["j0", "j2", "j1"]


def test_one_unit_has_one_side_and_a_crowd_is_cut():
    many = [Coordinate(f"j{k}", np.zeros((5, 1)), "rad") for k in range(MAXIMUM_CURVES + 3)]
    figure, panels = drawn(Curves("run", TIMES, joints=many), "joints")
    assert len(figure.axes) == 1 and len(panels["joints"].get_lines()) == MAXIMUM_CURVES
    assert line(panels["joints"], f"j{len(COLORS)}").get_color() == COLORS[0]  # colors come round
    assert panels["joints"].get_xlim() == (0.0, 1.0)


def test_energies_have_a_sum_where_there_are_several():
    energies = {"kinetic": np.arange(5.0)[:, None], "potential": np.full((5, 1), 2.0)}
    _, panels = drawn(Curves("run", TIMES, energies=energies), "energy")
    axes = panels["energy"]
    assert line(axes, "kinetic").get_color() == COLORS[0] and line(axes, "potential").get_color() == COLORS[1]
    total = line(axes, "sum")
    assert total.get_ydata().tolist() == [2.0, 3.0, 4.0, 5.0, 6.0] and total.get_linestyle() == "--"
    _, panels = drawn(Curves("run", TIMES, energies={"kinetic": np.ones((5, 1))}), "energy")
    assert [found.get_label() for found in panels["energy"].get_lines()] == ["kinetic"]


def test_contacts_fill_a_band_each_with_its_name_in_its_middle():
    times = {"world 0": np.array([0.0, 2.0, 1.0, 0.0, 3.0]), "world 1": np.zeros(5)}
    figure, panels = drawn(Curves("run", TIMES, contact_times=times), "contacts")
    axes = panels["contacts"]
    assert axes.get_yticks().tolist() == [0.5, 1.5] and axes.yaxis_inverted()
    mesh = axes.collections[0]
    corners = np.asarray(mesh.get_coordinates())
    assert corners[0, :, 0] == pytest.approx(np.linspace(-0.125, 1.125, 6)) and corners[:, 0, 1].tolist() == [0, 1, 2]
    assert np.ma.getmaskarray(mesh.get_array()).tolist() == [[True, False, False, True, False], [True] * 5]
    (bar,) = [other for other in figure.axes if other is not axes]
    assert bar.get_ylabel() == "contacts"
    _, panels = drawn(Curves("run", np.array([2.0]), contact_times={"world 0": np.ones(1)}), "contacts")
    edges = np.asarray(panels["contacts"].collections[0].get_coordinates())[0, :, 0]
    assert edges.tolist() == [1.5, 2.5]  # one frame is taken to last a second


def history(losses: list[float], norms: list[float]) -> Curves:
    return Curves("search", TIMES, history=History(np.arange(float(len(losses))), np.array(losses), np.array(norms)))


def test_the_loss_has_its_best_and_its_gradient_and_a_scale_that_can_show_them():
    _, panels = drawn(history([3.0, np.inf, 1.0, 2.0], [1.0, 2.0, 0.5, 0.1]), "loss")
    axes = panels["loss"]
    assert line(axes, "best so far").get_ydata().tolist() == [3.0, 3.0, 1.0, 1.0]
    colors = [line(axes, name).get_color() for name in ("best so far", "loss", "gradient norm")]
    assert colors == list(COLORS[:3]) and axes.get_yscale() == "log" and axes.get_xlabel() == "iteration"
    for losses, norms in (([3.0, -1.0], [1.0, 1.0]), ([3.0, 1.0], [1.0, 0.0])):
        _, panels = drawn(history(losses, norms), "loss")
        assert panels["loss"].get_yscale() == "linear"
    _, panels = drawn(history([3.0, 1.0], [np.nan, np.nan]), "loss")
    assert {found.get_label() for found in panels["loss"].get_lines()} == {"loss", "best so far"}


def test_gradients_are_the_adjoint_over_time_or_a_bar_for_each_input():
    _, panels = drawn(Curves("run", TIMES, adjoints=np.array([4.0, 2.0, 1.0])), "gradients")
    axes = panels["gradients"]
    (curve,) = axes.get_lines()
    assert curve.get_xdata().tolist() == [0.0, 0.5, 1.0] and curve.get_color() == COLORS[2]
    assert axes.get_yscale() == "log" and axes.get_xlabel() == "time, s"
    _, panels = drawn(Curves("run", TIMES, adjoints=np.array([4.0, 0.0])), "gradients")
    assert panels["gradients"].get_yscale() == "linear"
    _, panels = drawn(Curves("run", TIMES, gradients={"/A": 2.0, "/B": 1.0}), "gradients")
    axes = panels["gradients"]
    assert axes.get_xscale() == "log" and axes.yaxis_inverted()
    assert to_rgb(axes.patches[0].get_facecolor()[:3]) == to_rgb(COLORS[0])
    _, panels = drawn(Curves("run", TIMES, gradients={"/A": 2.0, "/B": 0.0}), "gradients")
    assert panels["gradients"].get_xscale() == "linear"


def test_panels_stand_below_each_other_in_a_figure_that_grows_with_them():
    curves = Curves("run", TIMES, energies={"kinetic": np.ones((5, 1))}, iterations=np.ones((5, 1)))
    figure, panels = drawn(curves, "energy", "solver")
    assert figure.get_size_inches().tolist() == pytest.approx([8.0, 2.3 * 2 + 0.5])
    figure.canvas.draw()
    assert panels["energy"].get_position().y0 > panels["solver"].get_position().y1
    assert curves.known() == ("energy", "solver")
