"""The reference panel: the closed forms against anchors of their own, ours within what the step explains."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpsim.check.panel import CASES, run_panel
from warpsim.check.panel.cases import _BOUNCE, _TUMBLE, _tumble
from warpsim.check.panel.closed_forms import bounce_height, slopes
from warpsim.check.panel.naive import billiard, bounce, cube, sliding_block
from warpsim.check.panel.table import Line, count_off, format_lines
from warpsim.cli.main import main


def lines(*names: str):
    return run_panel([case for case in CASES if case.name in names])


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_ours_is_exact(name):
    assert all(line.ok for line in lines(name)), lines(name)


def test_naive_simulations_reach_what_closed_forms_say():
    """Only their derivatives are wrong: a dropped ball after one bounce, two balls that meet and swap velocities."""
    z, e, g, time = 1.0, 0.8, 9.81, 0.7
    hit = np.sqrt(2 * z / g)
    up, left = e * g * hit, time - hit
    found = bounce(torch.tensor([z, 0.0, e], dtype=torch.float64), h=1e-4, time=time, gravity=g)
    assert float(found) == pytest.approx(up * left - g * left**2 / 2, abs=2e-3)
    apart = torch.tensor([0.0, 1.0, 2.0, -1.0], dtype=torch.float64)  # meet after 0.8 / 3 s
    found = billiard(apart, h=1e-4, time=0.5, radius=0.1)
    assert float(found) == pytest.approx(2.0 * 0.8 / 3 - (0.5 - 0.8 / 3), abs=2e-3)


def test_a_naive_block_slides_as_far_as_its_energy_lasts():
    v, mu = 2.0, 0.5
    found = sliding_block(torch.tensor([v, mu], dtype=torch.float64), h=1e-4, time=1.0)
    assert float(found) == pytest.approx(v * v / (2 * mu * 9.81), rel=1e-3)
    early = sliding_block(torch.tensor([v, mu], dtype=torch.float64), h=1e-4, time=0.1)
    assert float(early) == pytest.approx(v * 0.1 - mu * 9.81 * 0.1**2 / 2, rel=1e-2)


def test_naive_autodiff_of_an_elastic_wall_has_the_wrong_sign():
    case = next(case for case in CASES if case.name == "elastic wall")
    assert case.exact[0] == -1.0
    assert case.naive is not None and list(case.naive())[0] == pytest.approx(1.0)


def test_the_closed_form_of_the_bounce():
    assert bounce_height(np.array(_BOUNCE), time=0.7) == pytest.approx(0.53954, abs=1e-5)
    found = slopes(lambda x: bounce_height(x, time=0.7), list(_BOUNCE))
    assert found == pytest.approx([0.06254042, -0.143273, 0.96277447], abs=1e-6)


def test_the_closed_form_of_the_cube_is_the_limit_of_plain_steps():
    """Values of plain stepping converge, whatever its derivatives do."""
    exact = _tumble(np.array(_TUMBLE))
    errors = [float(cube(torch.tensor(_TUMBLE).double(), h=h, time=0.38, half=0.1)) - exact for h in (1e-3, 2.5e-4)]
    assert abs(errors[1]) < 0.5 * abs(errors[0]) < 0.01, errors


def test_the_command(capsys):
    assert main(["panel"]) == 0
    out = capsys.readouterr().out
    assert "elastic wall" in out and "tumbling cube" in out and "naive autodiff" in out


def test_columns_of_the_table_stand_below_one_another():
    lines = [Line("a", "by the longest of all", 1.0, 1.0, None, True), Line("a longer case", "b", 2.0, 2.5, 3.0, False)]
    head, first, second = format_lines(lines).splitlines()
    assert len(head) == len(first) and second == f"{second[: len(head)]}  OFF"
    assert head.index("derivative") == first.index("by the") == second.index(" b ") + 1
    assert count_off(lines) == ("1 of 2 within what the time step explains", 1)
    assert count_off(lines[:1]) == ("1 of 1 within what the time step explains", 0)
