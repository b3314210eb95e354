"""What is advised and told of a rollout's gradient, rule by rule, on figures that are made up."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from warpsim.check.validity.advice import Facts, advise, tame_steps
from warpsim.check.validity.growth import EPSILONS, NOISE, Growth, measure_growth
from warpsim.check.validity.measure import Validity, _power
from warpsim.check.validity.switches import Switch, _text, find_switches
from warpsim.core.precision import PRECISION


def growth(last: float, steps: int = 100, timestep: float = 0.01, adjoint: float = 0.0) -> Growth:
    """A perturbation whose logarithm grows evenly."""
    return Growth(np.linspace(0.0, last, steps + 1), np.linspace(adjoint, 0.0, steps + 1), timestep)


CALM = Facts(1.0, 100, 0.01, growth(0.1), switches=0, failures=0, depth=0.0, gain=0.0, softened=False)


def test_nothing_speaks_against_a_calm_run():
    assert advise(CALM) == "Nothing speaks against this gradient."
    at_their_borders = replace(CALM, depth=0.1, gain=0.05)
    assert advise(at_their_borders) == "Nothing speaks against this gradient."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gain": 0.06}, "Take a smaller step (0.0025 s): the run gains energy (6 % of the kinetic)."),
        ({"depth": 0.11}, "Take a smaller step (0.0025 s): shapes sink into each other (11 % of the smallest)."),
        ({"failures": 1}, "Take a smaller step (0.0025 s): 1 solves did not converge."),
        (
            {"failures": 2, "gain": 1.0},
            "the run gains energy (100 % of the kinetic) and 2 solves did not converge.",
        ),
        ({"switches": 3}, "the mode switches 3 times"),
    ],
)
def test_each_trouble_has_its_sentence(changes, words):
    assert words in advise(replace(CALM, **changes))


def test_contacts_that_are_softened_are_not_to_be_softened():
    assert "Soften" not in advise(replace(CALM, switches=3, softened=True))


def test_an_explosion_is_cut_into_windows_and_noise_ends_the_horizon():
    wild = replace(CALM, growth=growth(10.0))
    text = advise(wild)
    window = tame_steps(wild.growth)
    assert f"windows of {window} steps" in text and f"Windows({window})" in text
    assert "perturbations grow by 2e+04" in text and "Shorten" not in text
    noisy = replace(CALM, growth=growth(100.0))
    limit = noisy.growth.valid_seconds("float64")
    assert f"Shorten the horizon to {0.7 * limit:.3g} s" in advise(noisy)
    assert f"beyond {limit:.3g} s the gradient is noise" in advise(noisy)
    assert "Shorten" not in advise(replace(noisy, seconds=limit)) and "Windows" not in advise(CALM)
    double = PRECISION == "float64"
    assert ("compute in float64" in advise(noisy)) is not double


def test_the_horizon_ends_where_rounding_has_grown_to_what_counts():
    for precision, epsilon in EPSILONS.items():
        rate = 50.0  # 1/s
        limit = math.log(NOISE / epsilon) / rate
        found = growth(rate, steps=1000, timestep=1e-3)
        assert found.valid_seconds(precision) == pytest.approx(limit, abs=1.01e-3)
        short = growth(rate * 0.2, steps=200, timestep=1e-3)  # not there yet, at this rate it will be
        assert short.valid_seconds(precision) == pytest.approx(limit, abs=1e-6)
    assert growth(0.5).valid_seconds("float64") == math.inf
    assert growth(-30.0).valid_seconds("float64") == math.inf
    assert growth(20.0, steps=100).lyapunov == pytest.approx(20.0) and growth(1.0, steps=0).lyapunov == 0.0


def test_growth_of_maps_that_are_told(rng):
    maps = rng.normal(size=(6, 3, 3))
    found = measure_growth(maps, 0.1, seed=4)
    product, covector = np.eye(3), np.random.default_rng(4).normal(size=3)
    assert found.adjoint[-1] == pytest.approx(math.log(np.linalg.norm(covector))) and found.perturbation[0] == 0.0
    for k in range(6):
        product = maps[k] @ product
        assert found.perturbation[k + 1] == pytest.approx(math.log(np.linalg.norm(product, 2)))
        covector = maps[5 - k].T @ covector
        assert found.adjoint[5 - k] == pytest.approx(math.log(np.linalg.norm(covector)))


def validity(**changes) -> Validity:
    times = np.linspace(0.0, 1.0, 101)
    given = dict(
        times=times,
        switches=[],
        growth=growth(2.0, adjoint=3.0),
        failures=[],
        penetration=np.linspace(0.0, 2e-3, 101),
        energy=np.r_[5.0, 7.0, np.full(99, 6.0)],
        advice="none",
    )
    return Validity(**{**given, **changes})


def test_what_was_measured_is_told_line_by_line():
    lines = str(
        validity(switches=[Switch(k, 0.01 * k, f"change {k}") for k in range(1, 11)], failures=[4, 7])
    ).splitlines()
    assert lines[0].startswith("100 steps, 1 s, ") and lines[1] == "mode switches: 10"
    assert lines[2] == "  0.01 s: change 1" and lines[9] == "  0.08 s: change 8" and lines[10] == "  … 2 more"
    assert (
        "a perturbation by 7.4 over the rollout, at most 7.4; the adjoint by 20; Lyapunov exponent 2 1/s" in lines[11]
    )
    assert lines[12].startswith("gradients are noise in float64: beyond ")
    assert lines[14] == "solves that did not converge: 2, the first at step 4"
    assert lines[15] == "deepest penetration: 2 mm" and lines[16] == "energy: 5 J → 6 J, at most 7 J"
    assert lines[-1] == "advice: none"
    shown = str(validity(switches=[Switch(k, 0.01 * k, "x") for k in range(8)], growth=growth(0.1)))
    assert "more" not in shown and "noise in float64: at no horizon" in shown and "converge: 0\n" in shown


def test_what_a_record_keeps():
    kept = validity(growth=growth(0.1, adjoint=900.0)).record()
    assert kept["valid_seconds"] is None and kept["lyapunov"] == pytest.approx(0.1)
    assert kept["adjoint_norms"][0] == math.exp(700.0) and kept["adjoint_norms"][-1] == 1.0
    assert validity().record()["valid_seconds"] == validity().valid_seconds
    assert _power(800.0) == _power(700.0) == "1e+304" and _power(0.0) == "1"


# ------------------------------------------------------------------------------------------------------------ switches

MODEL = SimpleNamespace(
    layout=SimpleNamespace(actuator_names=["motor"], drive_names=["servo"], shape_names=["ball", "floor", "wall"]),
    pair_table=SimpleNamespace(pair_shapes=SimpleNamespace(numpy=lambda: np.array([[0, 1], [0, 2]]))),
)


class Modes:
    """Decisions of one step: pairs in reach, pairs that collide, ranges that cut."""

    def __init__(self, touching=(), struck=None, saturated=(0, 0, 0)) -> None:
        self.contacts = [(np.array([list(touching) + [-1]]), None)]
        self.impacts = None if struck is None else (np.array([list(struck) + [-1]]), None)
        self.saturated = np.array([saturated])

    def signature(self, world: int) -> tuple:
        impacts = () if self.impacts is None else tuple(self.impacts[0][0])
        return tuple(self.contacts[0][0][0]), impacts, tuple(self.saturated[0])


def test_changes_are_told_in_words():
    assert _text(Modes(), Modes([0, 1]), MODEL) == "ball and floor touch, ball and wall touch"
    assert _text(Modes([0, 1]), Modes([1]), MODEL) == "ball and floor part"
    assert _text(Modes(struck=[]), Modes(struck=[1]), MODEL) == "ball and wall collide"
    assert _text(Modes(struck=[1]), Modes(struck=[1]), MODEL).startswith("a contact's feature")
    assert _text(Modes(), Modes(saturated=(1, 0, 0)), MODEL) == "motor reaches its limit"
    assert _text(Modes(saturated=(0, -1, 1)), Modes(), MODEL) == "servo leaves its limit, range 2 of 3 leaves its limit"


def test_switches_are_the_steps_whose_decisions_are_not_those_before():
    modes = [Modes(), Modes(), Modes([0]), Modes([0]), Modes()]
    found = find_switches(modes, MODEL, 0.5)
    assert [(s.step, s.time) for s in found] == [(2, 1.0), (4, 2.0)]
    assert [s.text for s in found] == ["ball and floor touch", "ball and floor part"]
