"""Delays of channels and of controls: against closed forms, MuJoCo's data shifted in time, and differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import warpsim as ws
from identification_support import GUESS, NOISE, PENDULUM, TRUTH, pendulum_recordings
from warpsim.core.errors import InputError
from warpsim.core.torch_quaternions import quat_exponential
from warpsim.identification.delays import act_late, inside, read_late
from warpsim.identification.fit import prepare
from warpsim.identification.grid import Channel
from warpsim.identification.prediction import Contacts
from warpsim.identification.recordings import Recording

NUMBER = torch.ones((), dtype=torch.float64)


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    path = tmp_path_factory.mktemp("pendulum") / "pendulum.xml"
    path.write_text(PENDULUM.format(**GUESS))
    return path


def test_a_straight_motion_is_read_exactly():
    interval = torch.tensor([0.1, 0.2], dtype=torch.float64)
    seconds = torch.tensor([0.037, -0.05], dtype=torch.float64, requires_grad=True)
    steps = torch.arange(13)[:, None] * interval / 3  # three steps per sample
    made = (2.0 + 5.0 * steps)[..., None]
    read = read_late(None, Channel("joint:a", "plain", NUMBER, 1), made, seconds, interval, 3)
    expected = 2.0 + 5.0 * (torch.arange(1, 5) * interval[:, None] - seconds[:, None])
    torch.testing.assert_close(read[..., 0], expected)
    read.sum().backward()
    torch.testing.assert_close(seconds.grad, torch.full((2,), -5.0 * 4, dtype=torch.float64))


def test_a_rotation_at_constant_speed_is_read_exactly():
    axis = torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64)
    turned = quat_exponential(0.3 * torch.arange(9)[:, None, None] * axis)
    late = torch.tensor([0.07], dtype=torch.float64)
    channel = Channel("body_rotation:a", "rotation", NUMBER, 3)
    read = read_late(None, channel, turned, late, torch.tensor([0.2], dtype=torch.float64), 2)
    times = 0.2 * torch.arange(1, 5) - 0.07
    torch.testing.assert_close(read[0], quat_exponential(3.0 * times[:, None] * axis))  # 0.3 rad every 0.1 s


def test_a_step_is_given_the_mean_of_what_acts_in_it():
    controls = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64).reshape(1, 4, 1)
    interval = torch.tensor([0.1], dtype=torch.float64)
    acting = act_late(controls, 0, torch.tensor([0.025]).double(), interval, 2)[:, 0, 0]
    expected = [1.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]  # half of the first step of each pair
    torch.testing.assert_close(acting, torch.tensor(expected).double())
    known = act_late(controls, 1, torch.tensor([0.05]).double(), interval, 2)[:, 0, 0]  # the 1 acted before the start
    torch.testing.assert_close(known, torch.tensor([1.0, 2.0, 2.0, 4.0, 4.0, 8.0]).double())


def test_samples_that_a_delay_could_take_out_of_the_rollout_do_not_count():
    interval = torch.tensor([0.1], dtype=torch.float64)
    assert inside((-0.15, 0.2), interval, 8).tolist() == [[False, True, True, True, True, False, False]]
    assert inside((0.0, 0.05), interval, 4).tolist() == [[True, True, True]]


def predictor_of(pendulum, parameters, **options):
    noise = {"joint:hinge": NOISE}
    chosen = dict(noise=noise, units=None, samples=None, substeps=2, validation=0.0, seed=0, threads=1)
    return prepare(pendulum_recordings(2, 3, samples=24), pendulum, parameters, **{**chosen, **options}).predictor


@pytest.mark.parametrize("key", ["delay", "delay:joint:hinge", "delay:controls"])
def test_derivatives_by_a_delay_are_exact(pendulum, key):
    late = ws.Parameter(key, lower=-0.02, upper=0.03, start=0.0033, scale=0.01)
    predictor = predictor_of(pendulum, [ws.Parameter("body.mass:bob"), late])
    x = torch.tensor([[0.2, 0.1], [0.2, 0.1]], dtype=torch.float64, requires_grad=True)
    which, none = torch.arange(2), torch.zeros(2, 0, dtype=torch.float64)

    def loss(x):
        return predictor.residuals(x, none, which, 24, Contacts()).square().sum()

    (gradient,) = torch.autograd.grad(loss(x), x)
    for column in range(2):
        move = torch.zeros_like(x)
        move[:, column] = 1e-6
        with torch.no_grad():
            slope = (loss(x + move) - loss(x - move)) / 2e-6
        assert float(gradient[:, column].sum()) == pytest.approx(float(slope), rel=1e-5)


def delayed(recordings, seconds):
    """The same recordings, each with a clock of the measurements that runs late: MuJoCo's angles between samples."""
    made = []
    for recording, late in zip(recordings, seconds, strict=True):
        angles = np.interp(recording.times - late, recording.times, recording.channels["joint:hinge"][:, 0])[:, None]
        channels = {"joint:hinge": angles}
        made.append(
            Recording(recording.name, recording.times, channels, recording.controls, recording.q0, recording.qd0)
        )
    return made


def test_a_common_delay_is_found(pendulum):
    recordings = delayed(pendulum_recordings(10, 5, noise=0.002), np.full(10, 0.017))
    parameters = [
        ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0),
        ws.Parameter("body.mass:bob", lower=0.1, upper=9),
        ws.Parameter("delay", lower=0.0, upper=0.05, start=0.0, scale=0.01),
    ]
    found = ws.identify(recordings, pendulum, parameters, noise={"joint:hinge": 0.002}, check=False, validation=0.2)
    assert found.values == pytest.approx([*TRUTH.values(), 0.017], rel=0.05)
    assert [value.name for value in found.fitted_values] == ["joint.damping", "body.mass"]  # a delay is no part of it


def test_delays_of_each_recording_are_eliminated(pendulum):
    """Clocks that differ by up to 40 ms spoil a fit that does not know of them."""
    late = np.linspace(0.0, 0.04, 10)
    recordings = delayed(pendulum_recordings(10, 5, noise=0.002), late)
    shared = [
        ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0),
        ws.Parameter("body.mass:bob", lower=0.1, upper=9),
    ]
    own = ws.Parameter("delay", lower=-0.01, upper=0.05, start=0.02, prior=0.03, scale=0.01, per_recording=True)
    options = dict(noise={"joint:hinge": 0.002}, check=False, validation=0.0)
    truth = np.array(list(TRUTH.values()))
    known = ws.identify(recordings, pendulum, [*shared, own], **options)
    assert np.abs(known.values / truth - 1).max() < 0.04
    unaware = ws.identify(recordings, pendulum, shared, **options)
    assert np.abs(unaware.values / truth - 1).max() > 0.1
    assert known.loss < 0.1 * unaware.loss


def test_controls_that_act_late_are_found(pendulum):
    """The log has each torque two samples before it acted."""
    recordings = []
    for recording in pendulum_recordings(10, 6, noise=0.002):
        early = np.concatenate([recording.controls[2:], recording.controls[-1:].repeat(2, 0)])
        late = Recording(recording.name, recording.times, recording.channels, early, recording.q0, recording.qd0)
        recordings.append(late)
    parameters = [
        ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0),
        ws.Parameter("delay:controls", lower=0.0, upper=0.05, start=0.005, scale=0.01),
        ws.Parameter("body.mass:bob", lower=0.1, upper=9),
    ]
    found = ws.identify(recordings, pendulum, parameters, noise={"joint:hinge": 0.002}, check=False, validation=0.0)
    assert dict(zip(found.names, found.values, strict=True))["delay:controls"] == pytest.approx(0.02, abs=0.002)


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        (ws.Parameter("delay"), "give lower= and upper="),
        (ws.Parameter("delay:q", lower=0.0, upper=0.1, start=0.0), "no such channel is compared"),
        (ws.Parameter(("delay", "joint.damping:hinge"), lower=0.0, upper=0.1, start=0.0), "cannot share its value"),
        (ws.Parameter(("delay", "delay"), lower=0.0, upper=0.1, start=0.0), "set by two parameters"),
    ],
)
def test_delays_that_cannot_be_are_explained(pendulum, parameter, said):
    with pytest.raises(InputError, match=said):
        predictor_of(pendulum, [ws.Parameter("body.mass:bob"), parameter])


def test_keys_that_share_a_delay_are_all_late(pendulum):
    both = ("delay:joint:hinge", "delay:controls")
    predictor = predictor_of(pendulum, [ws.Parameter(both, lower=0.0, upper=0.05, start=0.01, scale=0.01)])
    late = predictor.late(torch.full((2, 1), 0.5, dtype=torch.float64), torch.zeros(2, 0, dtype=torch.float64))
    assert set(late) == set(predictor.delays) == set(both)
    assert all(torch.allclose(seconds, torch.full((2,), 0.015, dtype=torch.float64)) for seconds in late.values())
