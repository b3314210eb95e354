"""Parts of a task's search from made-up numbers: which iterate is nearest to success, which are shown, sliders."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from warpsim.core.errors import InputError
from warpsim.io.usd.motion import Motion
from warpsim.objective import Verdict
from warpsim.optimizers.result import Result
from warpsim.sim.live_sliders import Slider, _ranges, attribute_sliders, control_sliders
from warpsim.task.course import Course, is_shown, iterate
from warpsim.task.outcome import _thinned
from warpsim.task.success_watch import _REMEMBERED, SuccessWatch, _shortfall
from warpsim.view.page.content import SliderInfo


def verdict(value: float, bound: float) -> Verdict:
    return Verdict(value <= bound, "", value, bound)


def test_a_shortfall_is_relative_to_figure_and_bound():
    assert _shortfall([verdict(1.0, 2.0)]) == 0.0 and _shortfall([]) == 0.0
    assert _shortfall([verdict(3.0, 2.0), verdict(0.5, 1.0)]) == pytest.approx(1 / 3)
    assert _shortfall([verdict(3.0, 2.0), verdict(4.0, 1.0)]) == pytest.approx(1 / 3 + 3 / 4)
    assert _shortfall([Verdict(False, "", -1.0, 2.0)]) == pytest.approx(1.5)
    assert _shortfall([Verdict(False, "", 0.0, 0.0)]) == 0.0


class Problem:
    """Verdicts that each number of x misses by itself, beyond 1; counts what it simulates."""

    def __init__(self) -> None:
        self.simulated, self.watch = 0, None

    def choice(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def episode(self, x: torch.Tensor) -> torch.Tensor:
        self.simulated += 1
        return x

    def judge(self, x: torch.Tensor, world: int) -> list[Verdict]:
        return [verdict(float(v), 1.0) for v in x[world]]


def progress(*x: float, loss: float, iteration: int = 1) -> SimpleNamespace:
    at = torch.tensor(x)
    return SimpleNamespace(x=at, best_x=at, best_loss=loss, entry=SimpleNamespace(loss=loss, iteration=iteration))


def test_the_iterate_nearest_to_success_is_the_best_and_the_loss_decides_among_equals(monkeypatch):
    monkeypatch.setattr("dataclasses.replace", lambda seen, **new: SimpleNamespace(**{**vars(seen), **new}))
    problem = Problem()
    watch = SuccessWatch(problem)
    assert problem.watch is not None and not watch.succeeded
    for values, loss, best in (
        ((4.0,), 1.0, 4.0),
        ((2.0,), 9.0, 2.0),  # nearer, though its loss is larger
        ((3.0,), 0.1, 2.0),
        ((0.5,), 5.0, 0.5),  # met
        ((0.7,), 6.0, 0.5),
        ((0.9,), 4.0, 0.9),  # met, and cheaper
    ):
        seen = watch.see(progress(*values, loss=loss))
        assert seen.best_x.tolist() == [pytest.approx(best)]
    assert watch.succeeded and problem.simulated == 6
    watch.see(progress(0.9, loss=4.0))
    assert problem.simulated == 6  # it is known
    ended = watch.result(SimpleNamespace(x=torch.tensor([7.0]), loss=0.0, stopped="converged", message=""))
    assert ended.stopped == "target" and ended.loss == 4.0 and ended.x.tolist() == [pytest.approx(0.9)]


def test_candidates_of_many_worlds_are_known_for_a_while():
    problem = Problem()
    watch = SuccessWatch(problem)
    many = torch.arange(100.0)[:, None]
    problem.watch(many, many)
    assert len(watch._known) == _REMEMBERED
    watch._consider(many[99], 1.0)
    assert problem.simulated == 0
    watch._consider(many[0], 0.0)  # forgotten
    assert problem.simulated == 1 and watch.succeeded


def test_iterates_1_2_and_5_of_each_power_of_ten_are_shown():
    assert [k for k in range(300) if is_shown(k)] == [0, 1, 2, 5, 10, 20, 50, 100, 200]


def test_the_last_iterate_is_always_kept_and_never_twice():
    course = Course()
    assert course.stops() == ()
    for k in range(8):
        course.see(progress(float(k), loss=10.0 - k, iteration=k))
        assert [s.iteration for s in course.stops()] == sorted({i for i in (0, 1, 2, 5) if i <= k} | {k})
    assert course.stops()[-1].loss == 3.0 and course.stops()[-1].x.tolist() == [7.0]
    several = SimpleNamespace(
        x=torch.zeros(3, 1), best_x=torch.ones(1), best_loss=0.5, entry=SimpleNamespace(loss=9.0, iteration=4)
    )
    assert (iterate(several).loss, iterate(several).x.tolist()) == (0.5, [1.0])


@pytest.mark.parametrize(("frames", "fps", "kept"), [(61, 60, 61), (241, 240, 61), (121, 240, 31), (2, 1000, 2)])
def test_a_motion_is_thinned_to_sixty_frames_a_second(frames, fps, kept):
    times = np.arange(frames) / fps
    rows = np.arange(float(frames))
    motion = Motion(
        times,
        rows[:, None],
        rows[:, None],
        np.tile(rows[:, None, None], (1, 2, 3)),
        np.tile(rows[:, None, None], (1, 2, 4)),
    )
    found = _thinned(motion)
    assert len(found.times) == kept and found.times[-1] == times[-1] and found.times[0] == 0.0
    for field in (found.q[:, 0], found.qd[:, 0], found.positions[:, 0, 0], found.rotations[:, 1, 3]):
        assert field / fps == pytest.approx(found.times)


def test_a_prime_number_of_steps_has_a_shorter_last_interval():
    times = np.arange(1010) / 1000.0  # 1009 steps, of which every 16th is drawn
    found = _thinned(Motion(times, times[:, None], times[:, None], np.zeros((1010, 0, 3)), np.zeros((1010, 0, 4))))
    assert np.diff(found.times)[:-1] == pytest.approx(0.016) and found.times[-1] == times[-1]


# ------------------------------------------------------------------------------------------------------------- sliders


def robot() -> SimpleNamespace:
    """Actuators with and without a range, drives of a hinge and a slide, four dofs of which a free joint has some."""
    joint = SimpleNamespace
    mass = SimpleNamespace(numpy=lambda: np.array([[0.0, 2.0, 3.0]]))
    scene = SimpleNamespace(
        joints=[joint(name="knee", kind="hinge", limit=(-5.0, 2.0)), joint(name="rail", kind="slide", limit=None)]
        + [joint(name="root", kind="free", limit=None)],
        actuators=[
            SimpleNamespace(name="motor", control_range=(-2.0, 3.0)),
            SimpleNamespace(name="open", control_range=None),
        ],
        drives=[SimpleNamespace(name="k", joint="knee"), SimpleNamespace(name="r", joint="rail")],
    )
    values = {
        "actuator": torch.tensor([[[0.0, 1.5]]]),
        "drive_target": torch.tensor([[[0.5, -4.0]]]),
        "joint_force": torch.zeros(1, 1, 3),
        "wrench": torch.zeros(1, 1, 2, 6),
    }
    return SimpleNamespace(
        scene=scene,
        model=SimpleNamespace(body=SimpleNamespace(mass=mass)),
        actuator_names=("motor", "open"),
        drive_names=("k", "r"),
        dof_names=("knee", "rail", "root:x"),
        control_names=tuple(values),
        all_controls=lambda steps: values,
    )


def test_ranges_of_sliders():
    sim = robot()
    assert list(_ranges(sim, "actuator")) == [("motor", -2.0, 3.0, ""), ("open", -1.0, 1.0, "")]
    assert list(_ranges(sim, "drive_target")) == [("k", -math.pi, 2.0, "rad"), ("r", -1.0, 1.0, "m")]
    assert list(_ranges(sim, "drive_velocity")) == [("k", -math.pi, math.pi, "rad/s"), ("r", -1.0, 1.0, "m/s")]
    weight = 9.81 * 5.0
    assert list(_ranges(sim, "joint_force")) == [(n, -weight, weight, "N, N·m") for n in sim.dof_names]


def test_there_is_a_slider_for_each_number_but_for_what_the_mouse_pulls(monkeypatch):
    found = [(s.facts().name, s.control, s.place) for s in control_sliders(robot())]
    assert found == [
        ("motor", "actuator", 0),
        ("open", "actuator", 1),
        ("k", "drive_target", 0),
        ("r", "drive_target", 1),
        ("knee", "joint_force", 0),
        ("rail", "joint_force", 1),
    ]
    ends = {s.facts().name: (s.facts().low, s.facts().high, s.value) for s in control_sliders(robot())}
    assert ends["open"] == (-1.0, 1.5, 1.5) and ends["r"] == (-4.0, 1.0, -4.0)  # what is authored is within reach
    monkeypatch.setattr("warpsim.sim.live_sliders.MAXIMUM", 3)
    assert len(list(control_sliders(robot()))) == 3


def test_a_slider_stays_within_its_ends():
    slider, given = Slider(SliderInfo("/a.mass", 1.0, 2.0, 1.5)), []
    sim = SimpleNamespace(set_parameters=given.append)
    for value, kept in ((1.2, 1.2), (9.0, 2.0), (-9.0, 1.0)):
        slider.set(sim, value)
        assert slider.value == kept and given[-1] == {"/a.mass": kept}
    Slider(SliderInfo("motor", 0.0, 1.0, 0.0), "actuator", 1).set(SimpleNamespace(), 0.5)  # no attribute


def test_attributes_of_several_numbers_have_no_slider():
    sim = SimpleNamespace(attribute=lambda path: SimpleNamespace(numbers=np.ones(3 if "three" in path else 1)))
    with pytest.raises(InputError, match="has 3 numbers"):
        list(attribute_sliders(sim, {"/three": (0.0, 1.0)}))
    for low, high in ((1.0, 1.0), (2.0, 1.0)):
        with pytest.raises(InputError, match="is no range"):
            list(attribute_sliders(sim, {"/one": (low, high)}))
    (slider,) = attribute_sliders(sim, {"/one": (0.0, 1.0)})
    assert vars(slider.facts()) == vars(SliderInfo("/one", 0.0, 1.0, 1.0, "", "Attributes"))


def test_results_have_the_fields_that_watches_set():
    assert {"x", "loss", "stopped", "message"} <= set(Result.__dataclass_fields__)
