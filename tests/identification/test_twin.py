"""A twin that follows a motion of MuJoCo whose values change on the way."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import warpsim as ws
from example_support import load_example
from identification_support import GUESS, PENDULUM
from warpsim.core.errors import InputError

NOISE, RATE = 0.0005, 100.0
FOLLOWED = [
    ws.Parameter("body.mass:bob", lower=0.1, upper=9.0),
    ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0),
]
CHANGED = dict(mass=1.6, damping=0.3)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    path = tmp_path_factory.mktemp("twin") / "pendulum.xml"
    path.write_text(PENDULUM.format(**GUESS))
    return path


def samples(rows: int, change: int, seed: int = 0):
    """(angle, torque) of a driven pendulum whose mass and damping change at a row."""
    rng = np.random.default_rng(seed)
    before, after = (mujoco.MjModel.from_xml_string(PENDULUM.format(**values)) for values in (GUESS, CHANGED))
    data = mujoco.MjData(before)
    for row in range(rows):
        torque = 3 * np.sin(0.05 * row) + 2 * np.sin(0.13 * row)
        yield data.qpos + rng.normal(0, NOISE, 1), np.array([torque])
        data.ctrl[:] = torque
        mujoco.mj_step(before if row < change else after, data, 2)


@pytest.fixture(scope="module")
def followed(scene):
    twin = ws.Twin(scene, FOLLOWED, rate=RATE, noise={"q": NOISE}, window=40, every=10)
    return [twin.push({"q": angle}, torque) for angle, torque in samples(300, 150)]


def test_a_change_is_followed(followed):
    before, after = ([e for e in part if e.updated] for part in (followed[100:151], followed[250:]))
    for part, values in ((before, GUESS), (after, CHANGED)):
        truth = np.array([values["mass"], values["damping"]])
        apart = np.array([np.abs(e.values - truth) for e in part])
        assert apart[:, 0].max() < 0.05 * truth[0]
        inside = apart <= np.array([e.half_width for e in part])
        assert inside.mean() > 0.6  # few of them, and neighbors share rows


def test_residuals_tell_that_something_changed(followed):
    levels = {round(e.time * RATE): e.level for e in followed if e.updated}
    assert max(level for row, level in levels.items() if 60 <= row <= 150) < 1.5
    assert max(level for row, level in levels.items() if 150 < row <= 200) > 2.0
    assert levels[290] < 1.5


def test_updates_come_when_they_should(followed):
    assert [row for row, e in enumerate(followed) if e.updated][:3] == [40, 50, 60]
    assert followed[39].time == pytest.approx(0.39) and np.isinf(followed[39].half_width).all()
    assert np.isfinite(followed[40].half_width).all()


def test_samples_that_did_not_come_are_bridged(scene):
    twin = ws.Twin(scene, FOLLOWED, rate=RATE, noise={"q": NOISE}, window=40, every=10)
    for row, (angle, torque) in enumerate(samples(100, 1000)):
        lost = row % 7 == 3 or 60 <= row < 66  # row 60 begins a window
        found = twin.push({"q": np.full(1, np.nan) if lost else angle}, torque)
    assert found.values[0] == pytest.approx(GUESS["mass"], rel=0.05)
    assert found.level < 1.5


def test_mistakes_are_explained(scene):
    options = dict(rate=RATE, noise={"q": NOISE})
    with pytest.raises(InputError, match="every=50"):
        ws.Twin(scene, FOLLOWED, window=40, every=50, **options)
    with pytest.raises(InputError, match="'q'"):
        ws.Twin(scene, FOLLOWED, rate=RATE, noise={"qd": 1.0})
    twin = ws.Twin(scene, FOLLOWED, **options)
    with pytest.raises(InputError, match=r"sample 0: channels angle; wanted are q \(1,\)"):
        twin.push({"angle": 0.0})
    with pytest.raises(InputError, match="sample 0: the control is"):
        twin.push({"q": 0.0}, [np.nan])


@pytest.mark.long
def test_an_arm_that_picks_something_up(tmp_path):
    """Payload and friction change at 3 s; from 2 s later on, both are known within 5 %."""
    example = load_example("identify_arm")
    scene = tmp_path / "arm.xml"
    scene.write_text(example.arm(**example.BEFORE))
    for seed in range(3):
        estimates, _ = example.follow(scene, seed=seed)
        late = np.array([e.values for e in estimates[500:] if e.updated])
        assert np.abs(late / (example.AFTER["payload"], example.AFTER["friction"]) - 1).max() < 0.05
