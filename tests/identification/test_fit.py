"""Fits of made-up data with known values: MuJoCo made the data, and runs what comes out."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

import warpsim as ws
from identification_support import CUBE, GUESS, NOISE, PENDULUM, TRUTH, pendulum_recordings, toss_recordings
from simulator_support import PENDULUM_USD
from warpsim.cli.main import main
from warpsim.core.errors import InputError
from warpsim.identification.fit import stages
from warpsim.identification.gauss_newton import GaussNewton, Setting
from warpsim.identification.prediction import Contacts
from warpsim.identification.robust import curvature_product, sample_losses, sample_weights
from warpsim.identification.uncertainty import freedom, pulled, student_quantile

PARAMETERS = [
    ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0),
    ws.Parameter("body.mass:bob", lower=0.1, upper=9),
]


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    path = tmp_path_factory.mktemp("pendulum") / "pendulum.xml"
    path.write_text(PENDULUM.format(**GUESS))
    return path


def fitted(pendulum, recordings, **options):
    chosen = dict(noise={"joint:hinge": NOISE}, validation=0.0, robust=None, check=False)
    return ws.identify(recordings, pendulum, options.pop("parameters", PARAMETERS), **{**chosen, **options})


@pytest.fixture(scope="module")
def fit(pendulum):
    return fitted(pendulum, pendulum_recordings(12, 1), validation=0.25, check=True)


def test_values_are_found_within_their_intervals(fit):
    truth = np.array(list(TRUTH.values()))
    half = fit.uncertainty.half_width
    assert (np.abs(fit.values - truth) < 1.5 * half).all()
    assert (half < 0.05 * truth).all()


def test_held_out_recordings_are_predicted_to_their_noise(fit):
    assert len(fit.held_out) == 3 and not set(fit.held_out) & set(fit.train)
    mean = fit.errors["held out, from the measured start"].mean["joint:hinge"]
    assert mean == pytest.approx(NOISE * math.sqrt(2 / math.pi), rel=0.2)  # of a normal number's size


def test_the_check_of_the_loss_agrees_on_a_smooth_motion(fit):
    assert fit.loss_check.ok and min(fit.loss_check.cosine[:2]) > 0.99999


@pytest.mark.parametrize(("method", "within"), [pytest.param("adam", 0.02, marks=pytest.mark.long), ("lbfgs", 1e-3)])
def test_methods_on_the_exact_gradient_reach_the_same_loss(pendulum, fit, method, within):
    other = fitted(
        pendulum, pendulum_recordings(12, 1), validation=0.25, method=method, iterations=60, horizons=(), tolerance=1e-9
    )
    assert other.loss == pytest.approx(fit.loss, rel=within)


def test_errors_common_to_a_recording_widen_intervals(pendulum):
    """All samples of a recording off by one number: samples counted as independent promise several times too much."""
    found = fitted(pendulum, pendulum_recordings(24, 3, noise=0.001, common=0.02)).uncertainty
    assert (found.half_width > 1.5 * found.naive_half_width).all()


def many_fits(pendulum, sets: int) -> list:
    made = (pendulum_recordings(16, 100 + seed, samples=40, common=0.02) for seed in range(sets))
    return [fitted(pendulum, recordings, horizons=(), iterations=6) for recordings in made]


def coverage(fits) -> float:
    truth = np.array(list(TRUTH.values()))
    return float(np.mean([np.abs(found.values - truth) < found.uncertainty.half_width for found in fits]))


def held_by_others(fits, width: str) -> float:
    """Share of values that the interval of the next fit holds."""
    pairs = zip(fits, [*fits[1:], fits[0]], strict=True)
    return float(np.mean([np.abs(a.values - b.values) < getattr(a.uncertainty, width) for a, b in pairs]))


def test_intervals_cover_the_truth(pendulum):
    fits = many_fits(pendulum, 6)
    assert coverage(fits) >= 0.75  # 12 of them: fewer than 9 inside has a chance of 2e-4 at 95 %
    assert held_by_others(fits, "repeat_half_width") >= 0.75


@pytest.mark.long
def test_intervals_cover_the_truth_as_often_as_they_say(pendulum):
    fits = many_fits(pendulum, 50)
    assert 0.90 <= coverage(fits) <= 0.98
    assert 0.90 <= held_by_others(fits, "repeat_half_width") <= 0.99
    assert held_by_others(fits, "half_width") >= 0.74  # both values err: 83 % of exact intervals


def test_what_the_data_cannot_tell_is_named(pendulum):
    """A free swing scales with nothing but ratios: mass at the joint's axis and inertia cannot both be known."""
    silent = [*PARAMETERS, ws.Parameter("body.inertia:bob", [2])]
    found = fitted(pendulum, pendulum_recordings(6, 4), parameters=silent)
    assert not found.uncertainty.determined[2] and np.isinf(found.uncertainty.half_width[2])
    assert any("body.inertia:bob[2]" in s for s in found.uncertainty.sentences)


def test_a_value_at_its_bound_is_named(pendulum):
    bounded = [ws.Parameter("joint.damping:hinge", lower=0.0, upper=0.25), PARAMETERS[1]]
    found = fitted(pendulum, pendulum_recordings(6, 5), parameters=bounded)
    assert found.values[0] == pytest.approx(0.25)
    assert "joint.damping:hinge is held by its bound." in found.uncertainty.sentences


def test_a_prior_that_decides_is_named(pendulum):
    certain = [ws.Parameter("joint.damping:hinge", prior=1e-5), PARAMETERS[1]]
    found = fitted(pendulum, pendulum_recordings(4, 6), parameters=certain)
    assert found.values[0] == pytest.approx(GUESS["damping"], abs=1e-4)
    assert any(s.startswith("joint.damping:hinge rests on its prior") for s in found.uncertainty.sentences)
    assert found.uncertainty.half_width[0] >= 1.96e-5  # what the data leave open, the prior does


def test_values_of_each_recording_are_eliminated(pendulum):
    """Starts that are off by 0.1 rad spoil a fit that believes them, and not one that fits them."""
    recordings = pendulum_recordings(8, 7)
    rng = np.random.default_rng(7)
    for recording in recordings:
        recording.q0[:] += rng.normal(0, 0.1, 1)
    held = fitted(pendulum, recordings)
    free = fitted(pendulum, recordings, start="fitted", position_noise=0.1, velocity_noise=0.01)
    truth = np.array(list(TRUTH.values()))
    assert np.abs(free.values / truth - 1).max() < 0.05
    assert free.loss < 0.3 * held.loss


def test_a_parameter_may_differ_from_recording_to_recording(pendulum):
    """The mass is shared, the damping each recording's own with a wide prior around a wrong guess."""
    own = [ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0, prior=0.5, per_recording=True), PARAMETERS[1]]
    found = fitted(pendulum, pendulum_recordings(6, 8), parameters=own)
    assert found.names == ("body.mass:bob",)
    assert found.values[0] == pytest.approx(TRUTH["mass"], rel=0.02)


def test_a_cube_from_tosses_runs_in_mujoco(tmp_path):
    """Friction and center of mass of a tossed cube; the file that is written moves so in MuJoCo itself."""
    scene = tmp_path / "cube.xml"
    scene.write_text(CUBE.format(friction=0.3, com=0))
    tosses = toss_recordings(8, 2, 22, friction=0.2, com=0.004)
    parameters = [
        ws.Parameter("shape.friction:cube", [0], lower=0.02, upper=1.0, scale=0.02),
        ws.Parameter("body.com:cube", [0], scale=0.002),
        ws.Parameter("body.com:cube", [1], scale=0.002),
    ]
    found = ws.identify(
        tosses, scene, parameters, noise={"q": [1e-3] * 3 + [1e-2] * 3}, substeps=2,
        validation=0.25, horizons=(0.6,), check=False, difference=0.01,
    )  # fmt: skip
    assert found.values == pytest.approx([0.2, 0.004, 0.0], rel=0.01, abs=1e-4)
    written = found.save(tmp_path / "out")
    assert {path.name for path in written} == {"report.md", "report.html", "motion.html", "fitted.xml", "fitted.usda"}
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "fitted.xml"))
    assert model.geom("cube").friction[0] == pytest.approx(found.values[0], rel=1e-5)
    assert model.body("cube").ipos[:2] == pytest.approx(found.values[1:], rel=1e-5, abs=1e-9)  # both of one item
    page = (tmp_path / "out" / "report.html").read_text()
    assert "body.com:cube[0]" in page and page.count("<svg") >= 2 * 7
    again = ws.Simulator(tmp_path / "out" / "fitted.usda")
    assert float(again.parameter("body.com")[0, 1, 0]) == pytest.approx(found.values[1], rel=1e-5)


def test_the_command_writes_a_layer_over_usd(tmp_path, capsys):
    """A USD pendulum fitted by attribute, from a CSV of angles in degrees."""
    (tmp_path / "a.usda").write_text(PENDULUM_USD)
    sim = ws.Simulator(tmp_path / "a.usda")
    mass = next(f"{b}.physics:mass" for b in sim.body_names if b)
    value = 1.3 * float(sim.attribute(mass).value)
    lines = ["recording,time,q[0]"]
    for k, start in enumerate((0.4, 0.9, -0.7, 1.2)):
        motion = sim.rollout(40, q=[start], parameters={mass: value})
        lines += [f"r{k},{i * sim.timestep:.9g},{np.degrees(float(a)):.9g}" for i, a in enumerate(motion.q[:, 0, 0])]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    code = main(
        ["identify", str(tmp_path / "d.csv"), str(tmp_path / "a.usda"), "-o", str(tmp_path / "out"), "-p", mass,
         "--units", "q=deg", "--noise", "q=0.001", "--validation", "0.25"]
    )  # fmt: skip
    assert code == 0 and "report.md" in capsys.readouterr().out
    assert float(ws.Simulator(tmp_path / "out" / "fitted.usda").attribute(mass).value) == pytest.approx(value, rel=1e-3)


def test_a_schedule_ends_at_the_physical_model():
    """Short horizons with the softest contacts, then all samples, harder and harder."""
    made = stages(80, [Contacts(0.004), Contacts(0.0)], (0.3, 0.55), 3, 1e-4)
    assert [(s.samples, s.contacts.softening) for s in made] == [(24, 0.004), (44, 0.004), (80, 0.004), (80, 0.0)]


def test_batches_are_of_every_stage_but_the_last():
    made = stages(80, [Contacts(0.004), Contacts(0.0)], (0.5,), 3, 1e-4, batch=8)
    assert [(s.samples, s.contacts.softening, s.batch) for s in made] == [
        (40, 0.004, 8),
        (80, 0.004, 8),
        (80, 0.0, None),
    ]
    assert [s.batch for s in stages(80, [Contacts()], (0.5,), 3, 1e-4, spread=0.1, batch=8)] == [8, 8, None]
    assert {s.batch for s in stages(80, [Contacts()], (0.5,), 3, 1e-4)} == {None}


def test_batches_end_where_all_recordings_do_with_fewer_rollouts(pendulum, fit):
    recordings = pendulum_recordings(12, 1)
    other = fitted(pendulum, recordings, validation=0.25, batch=3)
    whole = fitted(pendulum, recordings, validation=0.25)
    np.testing.assert_allclose(other.values, fit.values, rtol=1e-4)
    assert other.rollouts < 0.85 * whole.rollouts


def test_batches_keep_values_of_each_recording(pendulum):
    """Nuisance values of recordings that a batch leaves out stay theirs, those in it go on."""
    own = [
        ws.Parameter("body.mass:bob", lower=0.1, upper=9),
        ws.Parameter("joint.damping:hinge", prior=0.1, per_recording=True),
    ]
    recordings = pendulum_recordings(6, 4)
    batched, whole = (fitted(pendulum, recordings, parameters=own, batch=batch) for batch in (2, None))
    np.testing.assert_allclose(batched.values, whole.values, rtol=1e-4)
    assert batched.loss == pytest.approx(whole.loss, rel=1e-4)


def test_averaged_predictions_change_nothing_where_a_loss_is_smooth(pendulum):
    data = pendulum_recordings(6, 9, samples=30)
    plain = fitted(pendulum, data, horizons=())
    averaged = fitted(pendulum, data, horizons=(), spread=0.1)
    sure = plain.uncertainty.half_width
    assert (np.abs(averaged.values - plain.values) < 0.2 * sure).all()
    assert averaged.uncertainty.half_width == pytest.approx(sure, rel=0.2)
    with pytest.raises(InputError, match="spread=-1"):
        fitted(pendulum, data, spread=-1)


def test_ripples_are_averaged_out():
    """The plane through a cloud has the slope that matters, also where a bound cuts the cloud."""
    solver = GaussNewton.__new__(GaussNewton)
    solver.lower, solver.upper = np.array([-1.0, -9.0]), np.array([9.0, 9.0])  # the first one cuts the cloud

    def rugged(x, z, setting):
        made = 2 * x[:, :1] - 3 * x[:, 1:] + 0.01 * torch.sin(500 * x).sum(-1, keepdim=True)
        return made[:, None, None]  # (c, R, samples, m)

    solver.residuals = rugged
    x, z = torch.tensor([[-0.9, 0.5]]), torch.zeros(1, 1, 0, dtype=torch.float64)
    mean, slopes = solver._averaged(x.double(), z, Setting(2, Contacts(), 1, spread=0.3))
    assert slopes.flatten().tolist() == pytest.approx([2.0, -3.0], rel=0.02)  # a derivative is off by up to 5
    assert float(mean) == pytest.approx(2 * -0.9 - 3 * 0.5, abs=0.02)


def test_softening_is_what_the_fit_ends_with(tmp_path):
    scene = tmp_path / "cube.xml"
    scene.write_text(CUBE.format(friction=0.3, com=0))
    tosses = toss_recordings(3, 2, 16, friction=0.2, com=0.0)
    options = dict(noise={"q": 1e-3}, substeps=2, validation=0.0, horizons=(), iterations=4)
    parameters = [ws.Parameter("shape.friction:cube", [0], lower=0.02, upper=1.0, scale=0.02)]
    soft = ws.identify(tosses, scene, parameters, softening=0.004, **options)
    hard = ws.identify(tosses, scene, parameters, softening=(0.004, 0.0), **options)
    assert soft.contacts.softening == 0.004 and hard.contacts.softening == 0.0
    assert abs(hard.values[0] - 0.2) < abs(soft.values[0] - 0.2)  # contacts that act early bias what they act on
    assert len(hard.loss_check.cosine) == 4 and hard.loss_check.advice
    for found, told in ((soft, True), (hard, False)):
        found.save(tmp_path / "out")
        assert ("softened by 0.004 m" in (tmp_path / "out" / "fitted.xml").read_text()) is told


def test_a_batch_of_nothing_is_refused(pendulum):
    with pytest.raises(InputError, match="batch=0: give 1 recording or more"):
        fitted(pendulum, pendulum_recordings(3, 1), batch=0)


def test_mistakes_are_explained(pendulum):
    data = pendulum_recordings(2, 1, samples=20)
    with pytest.raises(InputError, match="did you mean 'hinge'"):
        fitted(pendulum, data, parameters=["joint.damping:hing"])
    with pytest.raises(InputError, match="starts at"):
        fitted(pendulum, data, parameters=[ws.Parameter("body.mass:bob", lower=2.0, upper=3.0)])
    with pytest.raises(InputError, match="no channel 'elbow'"):
        fitted(pendulum, data, noise={"elbow": 1.0})
    with pytest.raises(InputError, match="start='guessed'"):
        fitted(pendulum, data, start="guessed")


def test_recordings_that_say_little_count_little():
    """Ten recordings that say the same are ten; beside one that says all, the other nine are none."""
    eye = torch.eye(2, dtype=torch.float64)
    equal = eye.repeat(10, 1, 1)
    assert freedom(equal.sum(0), equal).tolist() == pytest.approx([9.0, 9.0])
    one = torch.cat([1e6 * eye[None], equal[1:]])
    assert freedom(one.sum(0), one).tolist() == pytest.approx([1.0, 1.0])


def test_what_a_prior_pulls_completes_the_posterior():
    """Linear, with scores as large as their information and a truth drawn from the prior: the error's square is H⁻¹."""
    rng = np.random.default_rng(3)
    known, prior = (torch.tensor(a @ a.T) for a in rng.normal(size=(2, 3, 3)))
    whole = torch.linalg.inv(known + prior)
    torch.testing.assert_close(whole @ known @ whole + pulled(known + prior, prior), whole)


@pytest.mark.parametrize("width", [0.7, math.inf])
def test_robust_losses_have_these_derivatives(width):
    samples = torch.tensor(np.random.default_rng(0).normal(size=(5, 3)), requires_grad=True)
    (slope,) = torch.autograd.grad(sample_losses(samples, width).sum(), samples)
    torch.testing.assert_close(slope, sample_weights(samples, width)[:, None] * samples)
    hessian = torch.autograd.functional.hessian(lambda r: sample_losses(r, width), samples[0].detach())
    eye = torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(curvature_product(samples[0].detach(), eye, width), hessian)


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (10, 2.22814), (127, 1.97882)]
)
def test_quantiles_of_student(freedom, value):
    """From the printed table of the distribution."""
    assert student_quantile(0.975, freedom) == pytest.approx(value, rel=0.01)
