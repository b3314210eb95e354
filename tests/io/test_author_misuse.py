"""Cloths, soft bodies and liquids that cannot be: refused where they are authored, with the number and its name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from warpsim.core.errors import InputError, SceneError, UnknownNameError, WarpsimError
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd


@pytest.fixture
def world():
    stage = author.new_stage()
    yield author.world(stage)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cells": (0, 3)}, "cells=0; give a whole number, at least 1"),
        ({"cells": (-1, 3)}, "cells=-1"),
        ({"cells": (2.5, 3)}, "cells=2.5"),
        ({"cells": (3,)}, "two numbers of cells"),
        ({"size": (-1.0, 1.0)}, "two positive edges"),
        ({"size": (0.0, 1.0)}, "two positive edges"),
        ({"size": (float("nan"), 1.0)}, "two positive edges"),
        ({"size": (1.0,)}, "two positive edges"),
        ({"colour": (1, 0, 0)}, "option of Cloth 'colour'; did you mean 'color'"),
        ({"yung": 1e5}, "did you mean 'young'"),
    ],
)
def test_cloths(world, changes, words):
    with pytest.raises(WarpsimError, match=words):
        author.cloth(world, "Cloth", **{"size": (1.0, 1.0), "cells": (2, 2), **changes})


def test_friction_below_zero_is_refused_where_it_stands(world):
    for friction, fine in ((0.0, True), (-0.1, False)):
        author.cloth(world, f"Cloth{int(fine)}", (1.0, 1.0), (1, 1), friction=friction)
        if fine:
            read_usd(world.GetStage())
            continue
        with pytest.raises(SceneError, match=r"Cloth0/Material\.physics:dynamicFriction: -0\.1; it must not be"):
            read_usd(world.GetStage())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"box": (1.0, -1.0, 1.0)}, "edges and radii are positive"),
        ({"box": (1.0, 1.0)}, "edges and radii are positive"),
        ({"ball": 0.0, "box": None}, "edges and radii are positive"),
        ({"cells": (1, 1)}, "one for each of three edges"),
        ({"cells": (1, 0, 1)}, "cells=0"),
        ({"ball": 1.0}, "give a box, a ball, or points"),
        ({"thicknes": 1.0}, "did you mean 'thickness'"),
    ],
)
def test_soft_bodies(world, changes, words):
    with pytest.raises(InputError, match=words):
        author.soft(world, "Soft", **{"box": (1.0, 1.0, 1.0), "cells": 1, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pitch": 0.0}, "pitch is 0.0; it must be positive"),
        ({"pitch": -0.01}, "pitch is -0.01"),
        ({"pitch": float("nan")}, "pitch is nan"),
        ({"pitch": 1e-5}, r"makes 1e\+12 particles, more than 2000000"),
        ({"pitch": 1.0}, "no particle at a pitch of 1 fits"),
        ({"density": 0.0}, "density is 0.0"),
        ({"inside": (0.0, 0.0, 0.0)}, "give a prim, or the lower and the upper corner"),
        ({"inside": "cup"}, "inside='cup'"),
        ({"substeps": 0}, "substeps=0"),
        ({"substeps": 2.5}, "substeps=2.5"),
        ({"substep": 3}, "option of Tea 'substep'; did you mean 'substeps'"),
    ],
)
def test_liquids(world, changes, words):
    given = {"inside": ((0.0, 0.0, 0.0), (0.1, 0.1, 0.1)), "pitch": 0.05, **changes}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=words):
            author.liquid(world, "Tea", **given)


def test_names_of_options_are_those_that_are_read(world):
    with pytest.raises(UnknownNameError) as caught:
        author.cable(world, "Rope", np.eye(3), radius=0.1)
    for name in ("thickness", "young", "pinned", "position"):
        assert name in str(caught.value)


def test_cables_have_points_of_three_numbers_and_the_thickness_that_is_given(world):
    with pytest.raises(InputError, match=r"points have shape \(2, 2\); needed: \(n, 3\)"):
        author.cable(world, "Flat", [(0.0, 0.0), (1.0, 0.0)])
    author.cable(world, "Thin", [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)], thickness=0.0)
    with pytest.raises(SceneError, match=r"Thin/Material\.physics:thickness: 0 of /World/Thin; it must be above 0"):
        read_usd(world.GetStage())
