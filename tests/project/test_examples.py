"""The examples that optimize: each asserts its own success and writes its motion over the USD file it began with."""

from __future__ import annotations

import pytest

from example_support import load_example as _load


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "cartpole_mpc",
        "identification",
        "long_drag",
        "policy_hopper",
        "policy_swingup",
        "quadrotor_gates",
        "quadruped_mpc",
        "residual_force",
        "swing_design",
        "tumble_shot",
    ],
)
def test_an_example_succeeds(name, tmp_path):
    _load(name).main(str(tmp_path / "motion.usda"))
    assert (tmp_path / "motion.usda").is_file()


@pytest.mark.long
@pytest.mark.parametrize("name", ["arm_push", "quadruped_rise", "quadruped_trot"])
def test_an_example_solves_its_task(name, tmp_path):
    _load(name).main(str(tmp_path))
    assert (tmp_path / "result.usda").is_file()


@pytest.mark.long
def test_a_cube_is_identified_from_made_up_tosses(tmp_path):
    _load("identify_real_cube").main(output=str(tmp_path / "out"))
    assert (tmp_path / "out" / "fitted.xml").is_file()


@pytest.mark.long
def test_an_arm_is_identified_and_followed(tmp_path):
    _load("identify_arm").main(output=str(tmp_path / "out"))
    assert (tmp_path / "out" / "report.html").is_file()


def test_the_pour_falls_into_the_tray(tmp_path):
    _load("pour_angle").main(str(tmp_path / "pour.html"))
    assert (tmp_path / "pour.html").is_file()
