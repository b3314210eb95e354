"""Validity along a rollout: figures against closed forms, the named horizon against float32, advice that helps."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tools.evidence import chaos
from tools.evidence.chaos import double_pendulum, slopes_in
from warpsim.check.validity import measure_validity, plot_validity
from warpsim.check.validity.advice import explodes, tame_steps
from warpsim.check.validity.growth import Growth, measure_growth
from warpsim.cli.main import main
from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.sim.simulator import Simulator
from warpsim.tape import Memory, Windows

PROJECT = Path(__file__).resolve().parents[2]
SCENES = PROJECT / "scenes"


def ball(restitution: float = 0.8, **options) -> Scene:
    """On a vertical rail above a floor; q is the height of its lowest point."""
    material = dict(condim=1, restitution=restitution)
    scene = Scene(options=Options(**options), shapes=[Shape("floor", "plane", **material)])
    scene.bodies.append(Body("ball"))
    scene.joints.append(Joint("rail", "slide", "ball"))
    scene.shapes.append(
        Shape("ball", "sphere", "ball", np.array([0.0, 0.0, 0.1]), size=np.array([0.1, 0.0, 0.0]), **material)
    )
    return scene


@pytest.mark.parametrize("factor", [1e120, 1e-120])
def test_growth_beyond_what_numbers_hold(factor):
    growth = measure_growth(np.repeat(factor * np.eye(2)[None], 5, 0), 0.01)
    assert growth.perturbation[-1] == pytest.approx(5 * np.log(factor), rel=1e-12)
    assert growth.adjoint[0] - growth.adjoint[-1] == pytest.approx(5 * np.log(factor), rel=1e-12)


@pytest.mark.parametrize(("rate", "steps"), [(0.4, 11), (0.2, 20), (10.0, 1)])
def test_tame_steps_end_before_growth_reaches_a_hundred(rate, steps):
    """Growth e^(rate·k) passes 100 between steps 11 and 12, never within 20, or in the first."""
    growth = rate * np.arange(21)
    assert tame_steps(Growth(growth, growth[::-1], 0.01)) == steps


def test_a_step_that_forgets_everything_has_no_growth():
    growth = measure_growth(np.zeros((3, 2, 2)), 0.01)
    assert np.isfinite(growth.perturbation).all() and growth.perturbation[-1] < -100.0


def test_growth_of_a_known_map():
    """A constant map grows perturbations and adjoints by its largest eigenvalue per step."""
    step = np.diag([1.1, 0.9])
    growth = measure_growth(np.repeat(step[None], 400, 0), 0.01)
    assert growth.lyapunov == pytest.approx(np.log(1.1) / 0.01, rel=1e-9)
    assert growth.adjoint[0] - growth.adjoint[200] == pytest.approx(200 * np.log(1.1), rel=1e-2)
    limit = np.log(0.01 / np.finfo(np.float32).eps) / np.log(1.1) * 0.01
    assert growth.valid_seconds("float32") == pytest.approx(limit, abs=0.02)
    assert measure_growth(np.repeat(np.eye(2)[None], 100, 0), 0.01).valid_seconds("float32") == np.inf


def test_an_inverted_pendulum_grows_at_its_own_rate():
    """√(m g l / I) for a rod balanced on its end: the exponent of the linearized fall."""
    scene = double_pendulum()
    scene.bodies, scene.joints, scene.shapes = scene.bodies[:1], scene.joints[:1], scene.shapes[:1]
    sim = Simulator(scene)
    found = measure_validity(sim, 1500, q=np.array([np.pi]))
    mass, inertia = float(sim.model.body.mass.numpy()[0, 1]), float(sim.model.body.inertia.numpy()[0, 1, 1])
    rate = np.sqrt(mass * 9.81 * 0.25 / (inertia + mass * 0.25**2))
    late = found.growth.perturbation[500:]  # the fading mode has gone
    assert (late[-1] - late[0]) / (1000 * 0.002) == pytest.approx(rate, rel=5e-3)


def test_switches_have_their_times():
    found = measure_validity(Simulator(ball(timestep=1e-3)), 700, q=np.array([1.0]))
    fall = np.sqrt(2.0 / 9.81)
    assert found.switches[0].time == pytest.approx(fall, abs=2e-3)
    assert "floor and ball touch" in found.switches[0].text


@pytest.mark.long
def test_beyond_the_named_horizon_gradients_are_noise():
    """Float32 against float64, in processes of their own: digits agree well before the horizon, none well after."""
    found = measure_validity(Simulator(double_pendulum()), 5000)
    limit = found.growth.valid_seconds("float32")
    assert 1.0 < limit < 9.0
    steps = [round(f * limit / 0.002) for f in (0.5, 0.7, 1.5, 1.7)]
    error = chaos.deviations(slopes_in("float32", steps), slopes_in("float64", steps))
    assert error[:2].max() < 0.05, error
    assert error[2:].min() > 0.3, error
    assert found.growth.valid_seconds("float64") > 1.5 * limit


def test_the_published_curve_shows_the_horizon():
    """The data behind the picture in docs/gradients.md."""
    kept = json.loads((PROJECT / "docs" / "evidence" / "chaos.json").read_text())
    seconds, error = np.array(kept["seconds"]), np.array(kept["deviation"])
    assert error[seconds < 0.6 * kept["horizon_float32"]].max() < 0.05
    assert np.median(error[seconds > 1.3 * kept["horizon_float32"]]) > 0.5


def descend(loss, x: torch.Tensor, rate: float, steps: int) -> torch.Tensor:
    """Plain gradient descent."""
    for _ in range(steps):
        x = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(x), x)
        x = x - rate * gradient
    return x.detach()


@pytest.mark.long
def test_a_kick_that_is_damped_out_is_no_reason_to_cut():
    """A stiff damped spring turns 1 mm into ω·1 mm/s at once, and forgets it; an unstable one does not."""
    h, omega = 1e-3, 1e3
    damped = np.array([[1.0, h], [-(omega**2) * h / 4, 1.0 - omega * h]])
    apart = damped + np.diag([0.6, 0.0])
    for map_, unstable in ((damped, False), (apart, True)):
        rate = np.log(np.abs(np.linalg.eigvals(map_)).max())
        assert (rate > 0.0) == unstable
        growth = measure_growth(np.broadcast_to(map_, (500, 2, 2)), h)
        assert growth.perturbation.max() > math.log(100.0)
        assert growth.perturbation[-1] == pytest.approx(500 * rate, rel=0.05)
        assert explodes(growth) == unstable


def test_energy_that_controls_bring_in_is_no_drift():
    """A cart that is pushed from rest gains all that it has; one at rest has none to compare with."""
    sim = Simulator(SCENES / "cartpole.usda")
    pushed = measure_validity(sim, controls=torch.ones(50, 1, 1, dtype=sim.torch_dtype))
    assert pushed.energy[-1] > pushed.energy[0] + 0.01 and "gains energy" not in pushed.advice
    still = measure_validity(sim, 3, q=np.zeros(2), qd=np.zeros(2))
    assert "gains energy" not in still.advice


def test_a_standing_robot_needs_no_windows():
    """Its contacts are stiff, and hold what they are given."""
    found = measure_validity(Simulator(SCENES / "quadruped.usda"), 300)
    assert found.growth.perturbation.max() > math.log(100.0) > found.growth.perturbation[-1]
    assert "Windows" not in found.advice


def test_advice_to_resolve_impacts_improves_the_loss():
    """A bounce whose speed is to be chosen: compliant contact has the wrong slope, and descent goes the wrong way."""
    options = dict(timestep=1e-3)
    target = 0.52

    def solve(sim: Simulator) -> torch.Tensor:
        def loss(v):
            return (sim.rollout(700, q=torch.ones(1).double(), qd=v).q[-1, 0, 0] - target).square()

        return descend(loss, torch.tensor([0.3], dtype=sim.torch_dtype), 2.0, 15)

    plain, resolved = Simulator(ball(**options)), Simulator(ball(**options, impacts=True))
    advice = measure_validity(plain, 700, q=np.array([1.0]), qd=np.array([0.3])).advice
    assert "impacts=True" in advice

    def judged(v):  # by the ideal bounce
        v = float(v)
        touch = (v + np.sqrt(v * v + 2 * 9.81)) / 9.81
        after, rest = -0.8 * (v - 9.81 * touch), 0.7 - touch
        return (after * rest - 0.5 * 9.81 * rest**2 - target) ** 2

    assert judged(solve(resolved)) < 0.1 * judged(solve(plain))


@pytest.mark.long
def test_advice_to_take_truncated_windows_improves_the_loss():
    """Torques that slow a chaotic double pendulum: along the whole gradient none are found, along windows they are.

    Both take steps of the same lengths, which shrink at the same rate, so that the size of gradients plays no part.
    """
    sim, steps = Simulator(double_pendulum()), 2500
    window = int(re.search(r"Windows\((\d+)\)", measure_validity(sim, steps).advice).group(1))
    assert window < steps

    def best(length: float, **how) -> float:
        u, least = torch.zeros(steps, 1, 2, dtype=sim.torch_dtype), np.inf
        for k in range(40):
            u = u.detach().requires_grad_()
            loss = sim.rollout(controls=u, outputs=(), **how).qd.square().mean()
            least = min(least, float(loss.detach()))
            (gradient,) = torch.autograd.grad(loss, u)
            u = u - length * 0.95**k * gradient / gradient.square().mean().sqrt()
        return least

    start = float(sim.rollout(steps, outputs=()).qd.square().mean())
    cut = min(best(length, memory=Memory(schedule=Windows(window))) for length in (0.03, 0.1))  # N m, root mean square
    whole = min(best(length) for length in (0.01, 0.03, 0.1))
    assert cut < 0.5 * start and cut < 0.6 * whole, (start, cut, whole)


def test_advice_to_take_a_smaller_step_improves_the_loss():
    """Where the lower rod is after two seconds, judged by a fine simulation."""
    fine = Simulator(double_pendulum(2.5e-4))
    coarse = double_pendulum(0.02)
    advice = measure_validity(Simulator(coarse), 100).advice
    step = float(re.search(r"smaller step \(([\d.e-]+) s\)", advice).group(1))
    better = replace(coarse, options=replace(coarse.options, timestep=step))
    seconds, target = 1.0, -0.5

    def solve(sim: Simulator) -> torch.Tensor:
        steps = round(seconds / sim.timestep)

        def loss(v):
            return (sim.rollout(steps, qd=v, outputs=()).q[-1, 0, 1] - target).square()

        return descend(loss, torch.zeros(2, dtype=sim.torch_dtype), 0.2, 25)

    def judged(v):
        return float((fine.rollout(round(seconds / fine.timestep), qd=v, outputs=()).q[-1, 0, 1] - target).square())

    assert judged(solve(Simulator(better))) < 0.5 * judged(solve(Simulator(coarse)))


def test_the_command_and_its_picture(tmp_path, capsys):
    picture = tmp_path / "validity.png"
    scene = str(SCENES / "bounce.usda")
    assert main(["validity", scene, "--seconds", "0.5", "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "advice:" in out and "Lyapunov" in out and picture.is_file()
    drawn = plot_validity(measure_validity(Simulator(scene), 100))
    assert drawn.ndim == 3 and drawn.std() > 0


def test_switches_and_the_curve_are_drawn_where_they_happen():
    found = measure_validity(Simulator(str(SCENES / "stack.usda")), 30)
    assert found.switches
    drawn = plot_validity(found).astype(int)
    height, width = drawn.shape[:2]
    strips = (height - 24) // 4
    orange = np.abs(drawn - (214, 160, 90)).max(-1) == 0
    blue = np.abs(drawn - (52, 102, 184)).max(-1) == 0
    places = sorted({round(84 + s.time / found.times[-1] * (width - 84 - 16)) for s in found.switches})
    for row in range(4):
        strip = slice(row * strips, (row + 1) * strips)
        columns = np.flatnonzero(orange[strip].sum(0) > strips // 2)  # a line from below the title to the floor
        assert len(columns) and all(np.abs(np.array(places) - c).min() <= 1 for c in columns)
        rows = np.flatnonzero(orange[strip].any(1))
        assert 22 <= rows.min() <= 23 and strips - 7 <= rows.max() <= strips - 6
        inside = np.flatnonzero(blue[strip].any(1))
        assert inside.min() >= 20 and inside.max() <= strips - 4
