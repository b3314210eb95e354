"""Robots identified by the one call from data of MuJoCo: intervals hold what the data were made with."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import warpsim as ws
from example_support import load_example
from identification_robots import (
    BASE_NOISE,
    CONTACT,
    CONTACT_PARAMETERS,
    GUESSED_CONTACT,
    PENDULUM_PARAMETERS,
    forced_swings,
    pendulum_guess,
    pendulum_truth,
    quadruped,
    shoves,
)

# Of true 95 % intervals, fewer than 18 of 22 or 31 of 36 inside have a chance below 1 %.


def held(found, truth) -> int:
    return int((np.abs(found.values - truth) <= found.uncertainty.half_width).sum())


def pendulum_fit(tmp_path, factor: float, seed: int, count: int, steps: int):
    scene = tmp_path / "pendulum.xml"
    scene.write_text(pendulum_guess(factor, seed))
    options = dict(noise={"q": 0.005}, robust=None, validation=0.0, iterations=20, check=False)
    return ws.identify(forced_swings(count, seed, steps), scene, PENDULUM_PARAMETERS, **options)


def test_a_forced_double_pendulum_from_guesses_off_by_three(tmp_path):
    found = pendulum_fit(tmp_path, 3.0, 0, 4, 250)
    assert held(found, pendulum_truth()) >= 5
    assert (found.uncertainty.half_width[:2] < 0.02 * pendulum_truth()[:2]).all()  # of the masses
    assert found.loss < 1.2 * 4 * 250 * 2 / 2  # the noise's


@pytest.mark.long
def test_forced_double_pendulums(tmp_path):
    inside = [
        held(pendulum_fit(tmp_path, factor, seed, 8, 500), pendulum_truth())
        for factor in (1.3, 3.0)
        for seed in range(3)
    ]
    assert sum(inside) >= 31  # of 36


@pytest.mark.long
def test_an_arm_with_payload_friction_and_gains(tmp_path):
    example = load_example("identify_arm")
    scene = tmp_path / "arm.xml"
    scene.write_text(example.arm(**example.GUESS))
    found = example.fit(scene, example.measured(3))
    assert held(found, example.truth()) >= 18
    assert np.abs(found.values / example.truth() - 1).max() < 0.1
    found.save(tmp_path / "out")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "fitted.xml"))
    gain = found.values[3] * float(mujoco.MjModel.from_xml_path(str(scene)).actuator("servo0").gainprm[0])
    assert model.actuator("servo0").gainprm[0] == pytest.approx(gain, rel=1e-5)
    assert model.actuator("servo0").biasprm[1] == pytest.approx(-gain, rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_a_quadruped_and_its_feet_from_the_motion_of_its_trunk(tmp_path, seed):
    """Sliding feet make the loss rugged at the size of the intervals: predictions are averaged at the end."""
    scene = tmp_path / "quadruped.xml"
    scene.write_text(quadruped(**GUESSED_CONTACT))
    options = dict(noise=BASE_NOISE, robust=None, validation=0.0, iterations=6, difference=0.1, spread=0.1)
    found = ws.identify(shoves(12, seed), scene, CONTACT_PARAMETERS, **options)
    truth = np.array(list(CONTACT.values()))
    assert held(found, truth) == 3  # experiment and spread were chosen on seed 0 alone
    assert (found.uncertainty.half_width < 0.1 * truth).all()
