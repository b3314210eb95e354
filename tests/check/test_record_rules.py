"""Labels and comparisons of records at their borders, on records that are made up."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from warpsim.check.records import RunRecord
from warpsim.check.records.compare import _deviation, _differences, _labels, _text, compare, evaluate
from warpsim.check.records.labels import LABELS, label
from warpsim.check.records.matters import matter_summary
from warpsim.check.records.replay import _first_difference

NAMES = {"body": ["", "rod"], "joint": ["hinge"], "dof": ["x", "y"], "shape": ["s"], "actuator": ["m"], "drive": []}


def record(**changes: Any) -> RunRecord:
    """A run of ten steps of 0.01 s in one world, in which nothing is wrong."""
    given: dict[str, Any] = {f.name: {} for f in fields(RunRecord)}
    given |= {
        "created": "",
        "device": "cpu",
        "seed": None,
        "latency": None,
        "control_period": 0.01,
        "horizon": {"steps": 10, "seconds": 0.1},
        "names": NAMES,
        "actions": {"actuator": np.zeros((10, 1, 1))},
        "initial_state": {"q": np.zeros((1, 2))},
        "trajectory": {"times": np.arange(11) * 0.01, "every": 1, "sha256": "a", "q": np.zeros((11, 1, 2))},
        "actuator_status": None,
        "solver_status": None,
        "labels": [],
    }
    return RunRecord(**{**given, **changes})


def text(name: str, **changes: Any) -> str | None:
    return LABELS[name](record(**changes))


def test_nothing_is_said_of_a_run_in_which_nothing_is_wrong():
    assert label(record()) == []


def test_failed_solves_are_counted_from_the_first():
    status = np.zeros((10, 2))
    found = text("solver not converged", solver_status=status)
    bad = next(code for code in range(1, 9) if text("solver not converged", solver_status=status + code) is not None)
    assert found is None
    status[3, 1] = status[7, 0] = bad
    assert text("solver not converged", solver_status=status).startswith("2 of 20 solves; the first at step 3: ")


def test_an_adjoint_explodes_from_a_million_on():
    for norms, said in (
        ([1.0000001e6, 5.0, 1.0], True),
        ([1e6, 5.0, 1.0], False),
        ([0.0, 2e6, 0.0, 1.0], True),
        ([7.0], False),
    ):
        assert (text("exploding gradient", gradient={"adjoint_norms": norms}) is not None) is said
    assert "grows by 2.0e+06" in text("exploding gradient", gradient={"adjoint_norms": [4e6, 2.0]})


def test_a_gradient_vanishes_beside_its_loss():
    def said(largest: float, loss: float | None, **outcome: Any) -> bool:
        gradient = {"norms": {"a": largest, "b": largest / 2}}
        return text("vanishing gradient", gradient=gradient, outcome={"loss": loss, **outcome}) is not None

    assert said(2e-10, 2.0) and not said(2.1e-10, 2.0) and said(2e-10, -2.0)
    assert not said(0.0, 2.0, success=True) and not said(0.0, None) and not said(0.0, float("inf"))
    assert said(0.0, 0.0) and text("vanishing gradient", outcome={"loss": 1.0}) is None


def test_a_horizon_is_chaotic_beyond_what_is_valid():
    assert text("chaotic horizon", gradient={"valid_seconds": 0.1}) is None
    assert text("chaotic horizon", gradient={"valid_seconds": None}) is None
    assert "beyond 0.05 s of 0.1 s" in text("chaotic horizon", gradient={"valid_seconds": 0.05})


def test_the_first_five_switches_are_listed():
    times = np.arange(1, 7) * 0.01
    assert text("contact-mode switch", observations={"mode_switches": times}) == (
        "6 switches, at 0.01, 0.02, 0.03, 0.04, 0.05 … s"
    )
    assert text("contact-mode switch", observations={"mode_switches": times[:5]}).endswith("0.04, 0.05 s")


def test_energy_may_be_gained_by_a_twentieth_of_what_moves():
    def said(gain: float, **changes: Any) -> str | None:
        kinetic = np.linspace(0.0, 2.0, 11)[:, None]
        potential = -kinetic.copy()
        potential[7] += gain
        return text("energy drift", observations={"kinetic_energy": kinetic, "potential_energy": potential}, **changes)

    assert said(0.099) is None and said(0.2) == "an unforced run gains 0.2 J, 10 % of the kinetic energy that moves"
    assert said(0.2, actions={"actuator": np.ones((10, 1, 1))}) is None
    assert said(0.2, names={**NAMES, "drive": ["d"]}) is None


def test_depth_is_held_against_the_smallest_size():
    sizes = {"shape.size": np.array([[0.5, 0.2, 0.0], [1.0, 0.0, 0.0]])}
    depth = np.array([[0.0], [0.0199], [0.01]])
    assert text("deep penetration", observations={"penetration": depth}, parameters=sizes) is None
    assert text("deep penetration", observations={"penetration": depth + 0.002}, parameters=sizes) == (
        "21.9 mm deep, where the smallest size of a shape is 200 mm"
    )
    assert text("deep penetration", observations={"penetration": depth + 9.0}, parameters={}) is None


def test_the_actuator_most_often_at_its_limit_is_named():
    status = np.zeros((20, 1, 2))
    names = {**NAMES, "drive": ["d"]}
    status[:2, 0, 0] = 1
    assert text("saturated actuator", actuator_status=status, names=names) is None  # a tenth is no more than a tenth
    status[:6, 0, 1] = -1
    assert text("saturated actuator", actuator_status=status, names=names) == "d is at its limit for 30 % of the steps"


def test_controls_are_late_that_take_longer_than_their_period():
    assert text("late action", latency=[0.01, 0.002]) is None and text("late action", latency=[]) is None
    assert text("late action", latency=[0.011, 0.002, 0.02]).startswith("2 of 3 controls took longer")


def test_singular_values_far_apart_cannot_be_told():
    def said(values) -> str | None:
        return text("not identifiable", more={"identification": {"singular_values": values}})

    assert said([1.0, 2e-6]) is None and said([]) is None and said([1.0, 1e-6]) is not None
    assert said([4.0, 1e-9, 2.0]).startswith("singular values from 4 to 1e-09")


def test_what_is_not_finite_is_named():
    broken = np.zeros((11, 1, 2))
    broken[4] = np.nan
    trajectory = {"times": np.zeros(11), "sha256": "a", "q": broken, "qd": broken}
    assert text("non-finite", trajectory=trajectory) == "trajectory q is not finite"
    assert text("non-finite", outcome={"loss": float("inf")}) == "the loss is not finite"
    assert text("non-finite", gradient={"norms": {"a": 1.0, "b": float("nan")}}) == "the gradient by b is not finite"
    matters = {"matters": {"tea.x": {"largest": np.array([1.0, np.inf])}}, "sha256": ""}
    assert text("non-finite", trajectory=matters) == "trajectory tea.x is not finite"


def test_a_result_must_hold_at_half_of_the_variations_and_at_the_finer_step():
    def said(**held: bool) -> str | None:
        rows = [{"name": n.replace("_", " "), "success": s} for n, s in {"as_optimized": True, **held}.items()]
        return text("simulator exploit", more={"stress": rows})

    assert said(half_step=True, a=True, b=False, c=False) is None  # two of four
    assert said(half_step=True, a=False, b=False) == "holds at 1 of 3 variations of the simulator; lost at a, b"
    assert "lost at half step" in said(half_step=False, a=True, b=True, c=True)
    rows = [{"name": "as optimized", "success": False}, {"name": "half step", "success": False}]
    assert text("simulator exploit", more={"stress": rows}) is None  # it never was one


# --------------------------------------------------------------------------------------------------------- comparisons


def test_figures_of_a_run():
    q = np.arange(44.0).reshape(11, 2, 2)
    energies = {
        "potential_energy": np.array([[1.0, 1.0], [2.0, 4.0]]),
        "kinetic_energy": np.array([[0.0, 1.0], [0.0, 0.0]]),
    }
    found = evaluate(
        record(
            outcome={"loss": 0.25, "success": True, "error": np.zeros(3)},
            observations={**energies, "penetration": np.array([0.001, 0.002]), "mode_switches": np.zeros(3)},
            actuator_status=np.array([[[0, 1]], [[-1, 0]]]),
            names={**NAMES, "drive": ["d"]},
            trajectory={"q": q, "sha256": "", "times": np.zeros(11)},
            more={"attributes": {"/a.mass": {"after": [1.0, 2.0]}}},
            gradient={"norms": {"q": 3.0}},
        )
    )
    assert found["energy change, J"] == "1.5" and found["deepest penetration, mm"] == "2"
    assert found["mode switches"] == "3" and found["saturated, %"] == "50" and found["final q"] == "[40, 41]"
    assert found["/a.mass"] == "[1, 2]" and found["gradient norm by q"] == "3" and found["loss"] == "0.25"
    assert (
        "error" not in found
        and found["success"] == "True"
        and found["labels"] == "contact-mode switch, saturated actuator"
    )
    assert evaluate(record())["labels"] == "none"


def test_values_are_named_by_what_they_belong_to():
    assert _labels("parameters.body.mass", 2, NAMES) == ["world", "rod"]
    assert _labels("parameters.joint.damping", 2, NAMES) == ["x", "y"]  # by dof where they are as many
    assert _labels("parameters.joint.rest", 1, NAMES) == ["hinge"] and _labels(
        "bounds.actuator.control_range", 1, NAMES
    ) == ["m"]
    assert _labels("parameters.joint.rest", 3, NAMES) is None and _labels("actions.actuator", 1, NAMES) is None
    assert _labels("parameters.drive.gain", 0, NAMES) is None


def test_differences_go_down_to_the_value():
    a = {"m": np.array([1.0, 2.0]), "n": {"deep": 1}, "gone": 3, "nan": np.array([np.nan])}
    b = {"m": np.array([1.0, 2.5]), "n": {"deep": 2}, "new": 4, "nan": np.array([np.nan])}
    found = {name: (x, y) for name, x, y in _differences("parameters.body", a, b, {})}
    assert set(found) == {"parameters.body.m", "parameters.body.n.deep", "parameters.body.gone", "parameters.body.new"}
    assert found["parameters.body.gone"] == (3, "–") and found["parameters.body.new"] == ("–", 4)
    named = [name for name, *_ in _differences("parameters.body.mass", a["m"], b["m"], NAMES)]
    assert named == ["parameters.body.mass[rod]"]
    for other in (a["m"][:1], a["m"].astype(np.float32)):
        assert len(list(_differences("actions.u", a["m"], other, {}))) == 1
    assert _deviation(np.array([1.0, -2.0]), np.array([0.5, 3.0])) == 5.0 and _deviation("a", 1) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.arange(8.0), "[0, 1, 2, 3, 4, 5, 6, 7]"),
        (np.arange(9.0), "[0, 1, 2, 3, 4, 5, 6, 7, …]"),
        (np.array(2.5), "2.5"),
        (True, "True"),
        (np.float64(1 / 3), "0.333333"),
        (7, "7"),
        (None, "None"),
    ],
)
def test_values_are_short(value, shown):
    assert _text(value) == shown


def test_names_that_differ_name_nothing():
    first = record(parameters={"body.mass": np.array([0.0, 1.0])})
    second = record(parameters={"body.mass": np.array([0.0, 2.0])}, names={**NAMES, "body": ["", "bar"]})
    assert list(compare(first, second).inputs) == ["parameters.body.mass"]
    assert list(compare(first, record(parameters={"body.mass": np.array([0.0, 2.0])})).inputs) == [
        "parameters.body.mass[rod]"
    ]
    assert (
        compare(first, first).identical
        and not compare(first, record(trajectory={"sha256": "b", "times": []})).identical
    )


def test_the_first_frame_that_differs_is_told():
    def moved(q: np.ndarray, x: np.ndarray) -> RunRecord:
        kept = {"times": np.arange(4) * 0.5, "sha256": "", "q": q, "matters": {"tea.x": matter_summary(x)}}
        return record(trajectory=kept)

    q, x = np.zeros((4, 1, 2)), np.ones((4, 1, 3, 3))
    other = q.copy()
    other[2, 0, 1], other[3, 0, 0] = -1e-3, 5.0
    assert _first_difference(moved(q, x), moved(other, x)) == "q differs first at 1 s, by 1.00e-03"
    wet = x.copy()
    wet[1, 0, :, 2] -= 0.25
    assert _first_difference(moved(q, x), moved(q, wet)) == "tea.x differs first at 0.5 s, its mean by 2.50e-01"
    assert _first_difference(moved(q, x), moved(q, x)) == "differs between the frames that were kept"


def test_a_matter_is_kept_as_figures():
    x = np.arange(24.0).reshape(2, 1, 4, 3) - 20.0
    found = matter_summary(x)
    assert found["mean"].tolist() == [[[-15.5, -14.5, -13.5]], [[-3.5, -2.5, -1.5]]] and found["largest"].tolist() == [
        20.0,
        8.0,
    ]
    assert found["crc32"][0] != found["crc32"][1] and found["crc32"].dtype == np.int64
