"""When a gradient that differs is held against one without softening: only where softening acts backward alone."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from warpsim.check.gradcheck import check
from warpsim.check.gradcheck.check import _Checker
from warpsim.check.gradcheck.verdicts import EXACT, SMOOTHED, WRONG, Derivative, Finding
from warpsim.scene import Options, Scene


@pytest.fixture
def twins(monkeypatch) -> list:
    """Scenes whose gradients were asked for; the twin's gradient is 3 along the first number."""
    asked = []

    class Twin:
        def __init__(self, scene, **settings) -> None:
            asked.append(scene)

        def gradients(self, point, loss, parameters):
            return None, {"q": torch.tensor([3.0, 7.0])}

    monkeypatch.setattr(check, "Probe", Twin)
    right = lambda d, _: SimpleNamespace(verdict=EXACT if (d.gradient, d.terms) == (-3.0, 3.0) else WRONG)  # noqa: E731
    monkeypatch.setattr(check, "judge", right)
    return asked


def judged(softening: float, where: str, *verdicts: str) -> list[str]:
    """Verdicts after the second opinion; the gradients are along −1 times the first number."""
    checker = _Checker.__new__(_Checker)
    scene = Scene(options=replace(Options(), contact_softening=softening, softening_pass=where))
    checker._subject, checker._settings = SimpleNamespace(scene=scene, parameters=()), {}
    along = SimpleNamespace(tangent=np.array([-1.0, 0.0]))
    groups = {"q": [Finding(Derivative(along, 1.0, 1.0, None), verdict, "off") for verdict in verdicts]}
    return [f.verdict for f in checker._second_opinions(None, None, groups)["q"]]


def test_what_softening_changes_backward_is_smoothed_and_the_rest_stays(twins):
    assert judged(0.01, "backward", WRONG, EXACT) == [SMOOTHED, EXACT]
    assert [scene.options.contact_softening for scene in twins] == [0.0]


@pytest.mark.parametrize(("softening", "where"), [(0.0, "backward"), (0.01, "both")])
def test_nobody_is_asked_where_both_passes_are_alike(twins, softening, where):
    assert judged(softening, where, WRONG) == [WRONG] and not twins


def test_nobody_is_asked_where_nothing_is_wrong(twins):
    assert judged(0.01, "backward", EXACT, SMOOTHED) == [EXACT, SMOOTHED] and not twins
