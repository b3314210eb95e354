"""Recordings in parts: windows with starts of their own, multiple shooting, and its Jacobian against differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import warpsim as ws
from identification_support import GUESS, NOISE, PENDULUM, TRUTH, pendulum_recordings
from warpsim.core.errors import InputError
from warpsim.identification.coordinates import measured_states
from warpsim.identification.fit import prepare, stages
from warpsim.identification.gauss_newton import GaussNewton, Setting
from warpsim.identification.parameter import Parameter
from warpsim.identification.prediction import Contacts
from warpsim.identification.starts import start_moves
from warpsim.identification.windows import Windows, cut

PARAMETERS = [
    ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0),
    ws.Parameter("body.mass:bob", lower=0.1, upper=9),
]
VALUES = np.array(list(TRUTH.values()))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    path = tmp_path_factory.mktemp("pendulum") / "pendulum.xml"
    path.write_text(PENDULUM.format(**GUESS))
    return path


def prepared(pendulum, recordings, parameters=PARAMETERS):
    noise = {"joint:hinge": NOISE}
    options = dict(noise=noise, units=None, samples=None, substeps=2, validation=0.0, seed=0, threads=1)
    return prepare(recordings, pendulum, parameters, **options)


def fitted(pendulum, recordings, **options):
    chosen = dict(noise={"joint:hinge": NOISE}, validation=0.0, robust=None, check=False, horizons=())
    return ws.identify(recordings, pendulum, PARAMETERS, **{**chosen, **options})


def shooting(pendulum, windows, parameters=PARAMETERS):
    """A solver of two recordings with fitted starts, away from its optimum."""
    predictor = prepared(pendulum, pendulum_recordings(2, 3, samples=31), parameters).predictor
    moves = start_moves(predictor, 0.02, 0.3)
    pieces = cut(predictor, windows, Contacts(), guess=True)
    predictor.grid = pieces.grid
    solver = GaussNewton(predictor, torch.arange(2), robust=3.0, moves=moves, difference=1e-6, cut=pieces)
    generator = torch.Generator().manual_seed(0)
    solver.x = 0.3 * torch.randn(len(solver.x), generator=generator, dtype=torch.float64)
    solver.z = 0.3 * torch.randn(solver.z.shape, generator=generator, dtype=torch.float64)
    return solver


@pytest.mark.parametrize(
    ("windows", "continuity"), [(Windows(8), None), (Windows(8, 3), None), (Windows(7, continuity=0.5), 0.5)]
)
def test_gradient_and_jacobian_are_those_of_the_loss(pendulum, windows, continuity):
    """Numbers perturbed together are told apart: against reverse mode, and differences number by number."""
    own = [Parameter("joint.damping:hinge", lower=0.0, upper=5.0, prior=0.5, per_recording=True), PARAMETERS[1]]
    solver = shooting(pendulum, windows, own)
    setting = Setting(windows.samples, Contacts(), 1, continuity=continuity)
    x, z = solver.x.clone().requires_grad_(), solver.z.clone().requires_grad_()
    solver.losses(x[None], z[None], solver.residuals(x[None], z[None], setting), setting)[0].backward()
    normal = solver.linearize(setting)
    torch.testing.assert_close(normal.gx, x.grad, rtol=2e-4, atol=2e-3)
    torch.testing.assert_close(normal.gz, z.grad, rtol=2e-4, atol=2e-3)
    n, h = len(solver.x), 1e-5
    for column in range(solver.z.shape[1]):
        moved = [solver.z.clone() for _ in range(2)]
        for sign, one in zip((1, -1), moved, strict=True):
            one[:, column] += sign * h
        with torch.no_grad():
            both = solver.residuals(solver.x.expand(2, -1), torch.stack(moved), setting)
        difference = (both[0] - both[1]) / (2 * h)
        torch.testing.assert_close(normal.jacobian[..., n + column], difference, rtol=1e-3, atol=1e-3)


def test_one_jacobian_of_many_windows_costs_as_many_rollouts_as_of_two(pendulum):
    windows = Windows(6, continuity=1.0)
    solver = shooting(pendulum, windows)
    before = solver.predictor.rollouts
    solver.linearize(Setting(6, Contacts(), 1, continuity=1.0))
    rows = len(solver.shots.places[0]) * 5 / 30  # of whole recordings
    assert solver.predictor.rollouts - before == pytest.approx((1 + 2 + 2 * 2) * rows)


def test_a_motion_that_continues_has_no_gaps(pendulum):
    """Starts taken from one rollout of a recording: gaps vanish, and residuals are those of the whole."""
    predictor = prepared(pendulum, pendulum_recordings(2, 3, samples=31)).predictor
    whole = GaussNewton(predictor, torch.arange(2), robust=np.inf)
    setting = Setting(31, Contacts(), 1)
    with torch.no_grad():
        expected = whole.residuals(whole.x[None], whole.z[None], setting)[0]
        motion = predictor.rollout(torch.zeros(2, 2), torch.zeros(2, 0), torch.arange(2), 31, Contacts())
    moves = start_moves(predictor, 0.02, 0.3)
    pieces = cut(predictor, Windows(11, continuity=1.0), Contacts(), guess=True)
    owner, window = torch.nonzero(pieces.row >= 0, as_tuple=True)
    states = (motion[name].transpose(0, 1)[owner, 10 * window].double() for name in ("q", "qd"))
    q, qd = states
    predictor.grid = replace(pieces.grid, q=q, qd=qd)
    solver = GaussNewton(predictor, torch.arange(2), robust=np.inf, moves=moves, cut=pieces)
    made = solver.residuals(solver.x[None], solver.z[None], Setting(11, Contacts(), 1, continuity=1e-3))[0].detach()
    torch.testing.assert_close(made[:, :30], expected, rtol=1e-9, atol=1e-9)
    assert float(made[:, 30:].abs().max()) < 1e-6
    solver.z[0, solver.shots.start_size] = 1.0  # the second window of the first recording: a gap of one unit
    made = solver.residuals(solver.x[None], solver.z[None], Setting(11, Contacts(), 1, continuity=0.5))[0].detach()
    assert float(made[0, 30:].abs().max()) == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize(("start", "noise", "within"), [("measured", 1e-5, 1e-3), ("fitted", NOISE, 0.06)])
def test_values_from_windows(pendulum, start, noise, within):
    """Starts within a recording: measured without noise, or fitted to angles alone."""
    recordings = pendulum_recordings(12, 1, noise=noise, speeds=start == "measured")
    found = fitted(pendulum, recordings, windows=Windows(25, 12), start=start)
    assert np.abs(found.values / VALUES - 1).max() < within


def test_multiple_shooting_ends_where_whole_rollouts_do(pendulum):
    recordings = pendulum_recordings(8, 2)
    shot = fitted(pendulum, recordings, windows=Windows(16, continuity=(3.0, 0.3, 0.03, 0.003)), start="fitted")
    whole = fitted(pendulum, recordings, start="fitted")
    np.testing.assert_allclose(shot.values, whole.values, rtol=0.01)
    assert shot.loss == pytest.approx(whole.loss, rel=0.005)


def test_multiple_shooting_from_a_bad_guess(pendulum):
    """Long swings, and a guess that is off by a factor of five: starts are guesses, too, from a motion out of phase."""
    guess = [replace(PARAMETERS[0], start=2.0), replace(PARAMETERS[1], start=0.3)]
    recordings = pendulum_recordings(6, 9, samples=200)
    options = dict(noise={"joint:hinge": NOISE}, validation=0.0, robust=None, check=False, horizons=())
    windows = Windows(20, continuity=(1.0, 0.1, 0.01))
    shot = ws.identify(recordings, pendulum, guess, windows=windows, start="fitted", **options)
    assert np.abs(shot.values / VALUES - 1).max() < 0.01


def test_errors_are_judged_over_whole_recordings(pendulum):
    recordings = pendulum_recordings(8, 2)
    parts = ws.identify(
        recordings, pendulum, PARAMETERS, noise={"joint:hinge": NOISE}, validation=0.25, check=False, windows=15
    )
    assert len(parts.errors["held out, from the measured start"].by_sample["joint:hinge"]) == 59
    assert parts.curves(0).times.shape == (60,)


def test_velocities_between_samples_are_differences(pendulum):
    predictor = prepared(pendulum, pendulum_recordings(2, 3, samples=31)).predictor
    grid = predictor.grid
    grid.mask["joint:hinge"][0, 5] = 0.0
    q, qd, known = measured_states(grid, predictor.layout)
    angles, step = grid.measured["joint:hinge"][..., 0], float(grid.interval[0])
    torch.testing.assert_close(q[1, :26, 0], angles[1, :26])  # the second recording is shorter
    torch.testing.assert_close(qd[1, 3, 0], (angles[1, 4] - angles[1, 2]) / (2 * step))
    torch.testing.assert_close(qd[0, 4, 0], (angles[0, 4] - angles[0, 3]) / step)  # a neighbor is missing
    assert not known[0, 5, 0] and known[0, 4].all()


@pytest.mark.parametrize(
    ("windows", "start", "said"),
    [
        (Windows(1), "smoothed", "windows of 1 samples"),
        (Windows(500), "smoothed", "from 2 to 60"),
        (Windows(10, 0), "smoothed", "0 samples apart"),
        (Windows(10, continuity=1.0), "smoothed", 'need start="fitted"'),
        (Windows(10, 3, continuity=1.0), "fitted", "leave stride out"),
        (Windows(10, continuity=(1.0, 0.0)), "fitted", "give numbers above 0"),
    ],
)
def test_windows_that_cannot_be_are_explained(pendulum, windows, start, said):
    with pytest.raises(InputError, match=said):
        fitted(pendulum, pendulum_recordings(3, 1), windows=windows, start=start)


def test_windows_come_closer_before_contacts_change():
    made = stages(20, [Contacts(0.004), Contacts(0.0)], (0.5,), 3, 1e-4, continuity=(5.0, 0.5))
    assert [(s.samples, s.contacts.softening, s.continuity) for s in made] == [
        (20, 0.004, 5.0),
        (20, 0.004, 0.5),
        (20, 0.0, 0.5),
    ]
