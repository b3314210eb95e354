"""Terms and conditions on made-up motions: what each is at each frame, and what verdicts say; nothing is simulated."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from warpsim.core.errors import InputError, UnknownNameError
from warpsim.objective import (
    CenterOfMass,
    Container,
    ControlLimitsKept,
    Duration,
    Effort,
    Episode,
    Fill,
    Fixed,
    Function,
    JointLimitsKept,
    Keyframes,
    OnBody,
    OnMatter,
    Pose,
    Posture,
    Reach,
    Smoothness,
    Spill,
    StaysAbove,
    Within,
    at,
    running,
)
from warpsim.objective.control_terms import _OfControls
from warpsim.objective.episode import When
from warpsim.objective.places import as_place
from warpsim.objective.success import _amount, control_range

FRAMES, STEP = 11, 0.01


class Motion(dict):
    """Fields of a trajectory, and poses by a body's name."""

    def body_position(self, name: str) -> torch.Tensor:
        return self[f"{name} position"]

    def body_rotation(self, name: str) -> torch.Tensor:
        return self[f"{name} rotation"]

    def joint_position(self, name: str) -> torch.Tensor:
        return self[name]


def tensor(values) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values, dtype=float))


def episode(motion: dict | None = None, inputs: dict | None = None, worlds: int = 2, **sim) -> Episode:
    fake = SimpleNamespace(torch_dtype=torch.float64, device="cpu", worlds=worlds, **sim)
    given = {name: tensor(value) for name, value in (inputs or {}).items()}
    times = STEP * np.arange(FRAMES)
    fields = Motion({name: tensor(value) for name, value in (motion or {}).items()})
    return Episode(fake, fields, given, given, times, torch.full((worlds,), 0.1, dtype=torch.float64))


ALL = slice(0, FRAMES)


def moving(worlds: int = 2) -> dict[str, np.ndarray]:
    """A body at (t, world, 0), turned by t about z; frames at 0, 1, 2 and so on."""
    k = np.arange(FRAMES)[:, None] * np.ones(worlds)
    place = np.stack([k, np.broadcast_to(np.arange(worlds), k.shape), 0 * k], -1)
    turn = np.stack([np.cos(k / 2), 0 * k, 0 * k, np.sin(k / 2)], -1)
    return {"arm position": place, "arm rotation": turn}


def test_a_center_of_mass_is_held_against_its_target_axis_by_axis():
    e = episode({"com": np.tile([1.0, 2.0, 4.0], (FRAMES, 2, 1))})
    term = CenterOfMass(target=(0.5, 0.0, 1.0), axes="zx")
    assert term.outputs == ("com",) and CenterOfMass(target="arm").outputs == ("com", "body_position", "body_rotation")
    assert term.errors(e, slice(3, 4)).tolist() == [[[3.0, 0.5]] * 2]
    assert term.measure(e, slice(3, 4)).tolist() == [pytest.approx([math.hypot(3.0, 0.5)] * 2)]


def test_a_pose_has_a_distance_and_an_angle_apart():
    e = episode(moving())
    term = Pose(subject="arm", target=Fixed((0.0, 0.0, 0.0)), lever_arm=2.0)
    assert term.measure(e, slice(2, 3)).tolist() == [pytest.approx([2.0, math.sqrt(5.0)])]
    assert term.angle(e, slice(2, 3)).tolist() == [pytest.approx([2.0, 2.0])]
    assert term.errors(e, slice(2, 3))[0, 1].tolist() == pytest.approx([2.0, 1.0, 0.0, 0.0, 0.0, 2.0 * 2.0])
    judged = Within(term, 2.1, angle_tolerance=1.9).judge(episode(moving()), 1)
    assert [v.bound for v in judged] == [2.1, 1.9] and not any(v.met for v in judged)
    assert judged[1].text == "Pose: turn 147° at 0.1 s (needs ≤ 109°): no"


def test_a_place_on_a_body_is_turned_and_carried_with_it():
    e = episode(moving())
    place = OnBody("arm", (2.0, 0.0, 1.0))
    assert place.position(e, slice(1, 2))[0, 1].tolist() == pytest.approx(
        [1 + 2 * math.cos(1), 1 + 2 * math.sin(1), 1.0]
    )
    assert OnBody("arm").position(e, slice(1, 2))[0, 1].tolist() == [1.0, 1.0, 0.0]
    x = np.arange(FRAMES * 2 * 4 * 3, dtype=float).reshape(FRAMES, 2, 4, 3)
    point = OnMatter("net", "End", "net.x", 2)
    assert point.outputs == ("net.x",) and np.array_equal(
        point.position(episode({"net.x": x}), slice(5, 7)), x[5:7, :, 2]
    )
    with pytest.raises(InputError, match="net:End is a point"):
        point.rotation(e, ALL)


def test_keyframes_stand_before_the_first_and_after_the_last():
    place = Keyframes([0.02, 0.04, 0.08], [[1, 0, 0], [3, 0, 0], [3, 8, 0]])
    found = place.position(episode(), ALL)[:, 0].numpy()
    assert found[[0, 2, 3, 4, 6, 8, 10], 0].tolist() == pytest.approx([1, 1, 2, 3, 3, 3, 3])
    assert found[[4, 5, 6, 8, 10], 1].tolist() == pytest.approx([0, 2, 4, 8, 8])
    assert place.rotation(episode(), ALL).tolist() == [[[1.0, 0.0, 0.0, 0.0]]]
    alone = Keyframes([0.05], [[1, 2, 3]])
    assert alone.position(episode(), ALL)[:, 0].numpy() == pytest.approx(np.tile([1.0, 2.0, 3.0], (FRAMES, 1)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.0, 0.0], [[0, 0, 0]] * 2), "increasing"),
        (([], np.zeros((0, 3))), "increasing"),
        (([0.0, 1.0], [[0, 0, 0]]), r"finite positions of shape \(2, 3\)"),
        (([0.0], [[0, 0, math.inf]]), "finite positions"),
        (([0.0, 1.0], [[0, 0, 0]] * 2, [[1, 0, 0, 0]]), r"rotations of shape \(2, 4\)"),
    ],
)
def test_keyframes_that_are_none_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        Keyframes(*arguments)


@pytest.mark.parametrize("turn", [(1, 0, 0), (math.nan, 0, 0, 0)])
def test_fixed_places_are_three_numbers_and_four(turn):
    with pytest.raises(InputError, match="three finite coordinates and a quaternion"):
        Fixed((0.0, 0.0, 0.0), turn).check(None)
    with pytest.raises(InputError, match="three finite coordinates"):
        Fixed((0.0, 0.0)).check(None)
    assert as_place([1, 2, 3]).at == (1.0, 2.0, 3.0) and as_place("arm") == OnBody("arm")


# ------------------------------------------------------------------------------------------------------------- liquids


def liquid(*paths) -> Episode:
    """Particles (n) of one world on straight ways from place to place over all frames."""
    shares = np.linspace(0.0, 1.0, FRAMES)
    x = np.stack(
        [np.stack([np.interp(shares, np.linspace(0, 1, len(p)), c) for c in np.transpose(p)], -1) for p in paths], 1
    )
    return episode({"tea.x": x[:, None]}, worlds=1)


CUP = Container(Fixed((1.0, 0.0, 0.0)), (0.5, 0.25, 1.0))


def test_points_in_a_container_are_counted_in_half_edges():
    e = episode({**moving(1)}, worlds=1)
    local = CUP.local(tensor([[[[1.25, -0.25, 2.0]]]]).expand(FRAMES, 1, 1, 3), e, ALL)
    assert local[0, 0, 0].tolist() == pytest.approx([0.5, -1.0, 2.0])
    carried = Container(OnBody("arm"), (1.0, 1.0, 1.0))
    point = tensor([[[[1.0, 2.0, 0.0]]]]).expand(FRAMES, 1, 1, 3)
    turned = carried.local(point, e, ALL)[1, 0, 0].tolist()  # at (1, 0, 0), turned by 1 rad: back by as much
    assert turned == pytest.approx([2 * math.sin(1), 2 * math.cos(1), 0.0])
    for size in ((1.0, 1.0), (1.0, 0.0, 1.0), (1.0, math.inf, 1.0)):
        with pytest.raises(InputError, match="three positive half edges"):
            Container("arm", size)


def test_what_falls_beside_the_opening_costs_how_far_beside():
    """Through the plane z = 1 at the axis, at x = 1 + 0.5·3/4 (0.25 beyond the middle half), and never."""
    beside = 1.0 + 0.5 * 0.75
    e = liquid([(1, 0, 3), (1, 0, -1)], [(beside, 0, 3), (beside, 0, -1)], [(1, 0.5, 3), (1, 0.5, 2)])
    found = Fill(matter="tea", container=CUP).errors(e, slice(FRAMES - 1, FRAMES))
    assert found.shape == (1, 1, 9)
    drops = found.reshape(3, 3) * math.sqrt(3)
    assert drops[0].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    assert drops[1].tolist() == pytest.approx([0.25 / math.sqrt(1.25), 0.0, 0.0])
    off = math.hypot(2.0, 1.0)  # 2 half edges beside and 1 above the middle of the opening
    assert drops[2].tolist() == pytest.approx([0.0, 2.0 / math.sqrt(1 + off), 1.0 / math.sqrt(1 + off)])


def test_where_a_drop_crosses_lies_on_the_line_between_two_frames():
    """It falls 0.4 a frame and moves 0.1 half edges: through 1 at 0.5 of the way after the third frame."""
    k = np.arange(FRAMES)
    x = np.stack([1 + 0.05 * k, 0 * k, 2.0 - 0.4 * k], -1)[:, None, None]
    e = episode({"tea.x": x}, worlds=1)
    (error, *_) = Fill(matter="tea", container=CUP).errors(e, slice(FRAMES - 1, FRAMES)).flatten().tolist()
    assert error == pytest.approx(0.0, abs=1e-9)  # at 0.25: within the middle half
    x[:, ..., 0] += 0.25
    (error, *_) = (
        Fill(matter="tea", container=CUP).errors(episode({"tea.x": x}, worlds=1), slice(10, 11)).flatten().tolist()
    )
    assert error == pytest.approx(0.25 / math.sqrt(1.25))  # at 0.75


def test_the_share_outside_counts_the_walls_as_inside():
    e = liquid([(1, 0, 0)] * 2, [(1.5, 0.25, 1)] * 2, [(1.51, 0, 0)] * 2, [(1, 0, 1.01)] * 2)
    assert Fill(matter="tea", container=CUP).measure(e, slice(0, 1)).tolist() == [[0.5]]


def test_what_is_spilled_costs_the_way_to_the_nearest_container():
    other = Container(Fixed((4.0, 0.0, 0.0)), (0.5, 0.5, 0.5))
    e = liquid([(1, 0, 0)] * 2, [(2.0, 0, 0)] * 2, [(3.2, 0, 1.5)] * 2)
    term = Spill(matter="tea", containers=(CUP, other))
    drops = term.errors(e, slice(0, 1)).reshape(3, 3) * math.sqrt(3)
    assert drops.tolist() == [
        pytest.approx([0, 0, 0], abs=1e-12),
        pytest.approx([0.5, 0, 0]),
        pytest.approx([-0.3, 0, 1.0]),
    ]
    assert term.measure(e, slice(0, 1)).tolist() == [pytest.approx([2 / 3])]
    with pytest.raises(UnknownNameError, match="tea"):
        term.check(SimpleNamespace(state_names=("q", "milk.x")))


# ------------------------------------------------------------------------------------------------------------ controls


def test_roughness_is_by_the_seconds_of_a_step():
    u = np.arange(10.0)[:, None, None] ** 2 * np.ones((10, 2, 1))
    e = episode(inputs={"actuator": u})
    assert Smoothness().errors(e, slice(2, 4))[:, 0, 0].tolist() == pytest.approx([500.0, 700.0])
    assert Smoothness().errors(e, slice(10, 11))[:, 0, 0].tolist() == pytest.approx([1700.0])
    one = Episode(e.sim, e.trajectory, {}, {"a": tensor(np.ones((1, 2, 1)))}, e.times, e.duration)
    assert Smoothness().errors(one, ALL).tolist() == [[[0.0], [0.0]]]
    assert _OfControls._steps(slice(10, 11), 10) == slice(9, 10) and _OfControls._steps(slice(2, 5), 10) == slice(2, 5)


def test_effort_takes_the_controls_that_are_named():
    e = episode(inputs={"a": np.ones((10, 2, 1)), "b": 3 * np.ones((10, 2, 2))})
    assert Effort(controls=["b"]).errors(e, ALL)[0, 0].tolist() == [3.0, 3.0]
    assert Effort().errors(e, ALL)[0, 0].tolist() == [1.0, 3.0, 3.0]
    with pytest.raises(UnknownNameError, match="did you mean"):
        Effort(controls=["aa"]).errors(e, ALL)
    assert Duration().measure(e, slice(2, 5)).tolist() == [[0.1, 0.1]] * 3


def test_posture_measures_the_worst_joint_and_follows_a_reference():
    joints = {"a": SimpleNamespace(kind="hinge", q=slice(0, 1)), "b": SimpleNamespace(kind="slide", q=slice(2, 3))}
    q = np.stack([np.arange(11.0), np.full(11, 99.0), 2 * np.arange(11.0)], -1)[:, None]
    e = episode({"q": q}, worlds=1, joint=joints.__getitem__, joint_names=("a", "b"))
    assert Posture().measure(e, slice(3, 4)).tolist() == [[6.0]]
    term = Posture(position=[[0.0, 0.0], [10.0, 0.0]], times=[0.0, 0.1])
    assert term.errors(e, slice(4, 5)).tolist() == [[pytest.approx([0.0, 8.0])]]
    free = SimpleNamespace(joint_names=("f",), joint=lambda name: SimpleNamespace(kind="free"))
    with pytest.raises(InputError, match="no hinge or slide"):
        Posture().check(free)
    with pytest.raises(InputError, match="f is a free joint"):
        Posture(joints=["f"]).check(free)


# ------------------------------------------------------------------------------------------------------------ verdicts


def reaching(values) -> tuple[Within, Episode]:
    """A body whose distance from the origin is as given, frame by frame."""
    place = np.zeros((FRAMES, 1, 3))
    place[:, 0, 0] = values
    return place


def test_a_tolerance_holds_for_as_long_as_it_is_asked_for():
    """Wanted from 0.07 s on, at the frames 7 … 10; the one at 0.06 s is larger."""
    values = np.full(FRAMES, 0.5)
    values[6], values[8] = 9.0, 0.75
    e = episode({"arm position": reaching(values)}, worlds=1)
    term = Reach(subject="arm", target=(0, 0, 0))
    (verdict,) = Within(term, 0.75, held_for=0.03).judge(e)
    assert verdict.met and verdict.value == 0.75 and "at worst from 0.07 s to 0.1 s" in verdict.text
    (verdict,) = Within(term, 0.75, held_for=0.0301).judge(e)
    assert not verdict.met and verdict.value == 9.0 and "from 0.06 s" in verdict.text
    (verdict,) = Within(term, 0.5).judge(e)
    assert verdict.met and verdict.text == "Reach: distance 500 mm at 0.1 s (needs ≤ 500 mm): yes"
    (verdict,) = Within(Reach(subject="arm", target=(0, 0, 0), when=running()), 1.0, held_for=0.01).judge(e)
    assert not verdict.met and "from 0 s to 0.1 s" in verdict.text
    assert Within(term, 9.0, held_for=0.1).judge(e)[0].met
    with pytest.raises(InputError, match=r"held for 0\.11 s, but its time is 0\.1 s"):
        Within(term, 9.0, held_for=0.11).judge(e)
    for wrong in (dict(tolerance=-1.0), dict(tolerance=1.0, held_for=-1.0), dict(tolerance=math.nan)):
        with pytest.raises(InputError, match="give 0 or more"):
            Within(term, **wrong)


def test_a_number_that_is_none_is_the_worst_there_is():
    values = np.zeros(FRAMES)
    values[4] = math.nan
    e = episode({"arm position": reaching(values)}, worlds=1)
    (verdict,) = Within(Reach(subject="arm", target=(0, 0, 0), when=running()), 1.0).judge(e)
    assert not verdict.met and math.isnan(verdict.value)


def test_the_lowest_height_is_named_with_its_time():
    place = np.zeros((FRAMES, 2, 3))
    place[:, 1, 2] = np.abs(np.arange(FRAMES) - 3.0) + 0.5
    e = episode({"arm position": place})
    (verdict,) = StaysAbove("arm", 0.5).judge(e, 1)
    assert verdict.met and verdict.text == "height of arm: lowest 500 mm at 0.03 s (needs ≥ 500 mm): yes"
    (verdict,) = StaysAbove("arm", 0.51, name="head").judge(e, 1)
    assert not verdict.met and verdict.text.startswith("head: lowest") and verdict.bound == 0.51


def limited(*joints) -> dict:
    scene = SimpleNamespace(joints=[SimpleNamespace(name=n, kind=k, limit=l) for n, k, l, _ in joints])
    motion = {name: np.array(q)[:, None] * np.ones((1, 2)) for name, _, _, q in joints}
    return dict(motion=motion, scene=scene)


def test_the_joint_furthest_beyond_its_tolerance_is_named():
    e = episode(
        **limited(
            ("knee", "hinge", (-1.0, 1.0), [0.0, 1.02]),  # by 20 mrad, of 30 that are let pass
            ("rail", "slide", (-2.0, 1.0), [0.0, -2.01]),  # by 10 mm, of none
            ("ball", "ball", (0.0, 0.1), [5.0, 5.0]),
            ("loose", "hinge", None, [9.0, 9.0]),
        )
    )
    (verdict,) = JointLimitsKept(angle_tolerance=0.03).judge(e)
    assert not verdict.met and verdict.text == "joint limits: rail passes its limit by 10 mm (needs ≤ 0 µm): no"
    (verdict,) = JointLimitsKept(angle_tolerance=0.03, tolerance=0.02).judge(e)
    assert verdict.met and "rail" in verdict.text or "knee" in verdict.text
    (verdict,) = JointLimitsKept(angle_tolerance=0.01, tolerance=0.02).judge(e)
    assert not verdict.met and "knee passes its limit by 1.15° (needs ≤ 0.573°)" in verdict.text
    e = episode(**limited(("knee", "hinge", (-1.0, 1.0), [0.0, 0.5]), ("hip", "hinge", (-1.0, 2.0), [0.0, 1.75])))
    (verdict,) = JointLimitsKept().judge(e)
    assert verdict.met and verdict.text == "joint limits: kept, hip closest with 14.3° to spare: yes"
    assert verdict.value == pytest.approx(-0.25)


def test_controls_are_held_against_ranges_that_may_be_open():
    scene = SimpleNamespace(
        actuators=[SimpleNamespace(control_range=r) for r in ((-1.0, 3.0), None, (0.0, math.inf))], drives=[]
    )
    names = dict(scene=scene, actuator_names=("a", "b", "c"), drive_names=(), dof_names=("d",))
    used = np.zeros((10, 2, 3))
    used[4] = (3.4, 100.0, 5.0)  # a tenth of the width of 4 too much
    e = episode(inputs={"actuator": used, "joint_force": np.full((10, 2, 1), 1e9)}, **names)
    (verdict,) = ControlLimitsKept().judge(e)
    assert not verdict.met and verdict.text == "control limits: a exceeds its range by 10 %: no"
    used[4] = (3.0, 100.0, -0.5)
    (verdict,) = ControlLimitsKept().judge(episode(inputs={"actuator": used}, **names))
    assert "c exceeds its range by 50 %" in verdict.text
    used[4] = (3.0 + 1e-9, 0.0, 0.0)
    assert ControlLimitsKept().judge(episode(inputs={"actuator": used}, **names))[0].met  # rounding
    lower, upper = control_range(e.sim, "actuator")
    assert lower.tolist() == [-1.0, -math.inf, 0.0] and upper.tolist() == [3.0, math.inf, math.inf]
    (verdict,) = ControlLimitsKept().judge(episode(inputs={"joint_force": np.ones((10, 2, 1))}, **names))
    assert verdict.met and "no control has any" in verdict.text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.25, "rad", "14.3°"),
        (2.5, "m", "2.5 m"),
        (1.0, "m", "1 m"),
        (0.25, "m", "250 mm"),
        (1e-3, "m", "1 mm"),
        (2.5e-4, "m", "250 µm"),
        (-0.25, "m", "-250 mm"),
        (1e-6, "m", "1 µm"),
        (9e-7, "m", "less than 1 µm"),
        (0.0, "m", "0 µm"),
        (0.125, "s", "0.125 s"),
        (3.0, "", "3"),
    ],
)
def test_figures_are_easily_read(value, unit, text):
    assert _amount(value, unit) == text


def test_windows_and_their_ends():
    times = STEP * np.arange(FRAMES)
    assert running(0.03, 0.05).frames(times) == slice(3, 6) and running(0.03).frames(times) == slice(3, 11)
    assert running().frames(times) == ALL and running(last=0.02).frames(times) == slice(0, 3)
    assert When().span(times) == (0.1, 0.1) and at(0.05).span(times) == (0.05, 0.05)
    with pytest.raises(InputError, match="ends before it begins"):
        running(0.05, 0.03).frames(times)
    assert running(0.03, 0.03).frames(times) == slice(3, 4)
    for kind in ("late", "time"):
        with pytest.raises(InputError, match="when="):
            When(kind)


def test_functions_give_a_number_for_frames_or_for_steps():
    for count in (FRAMES, FRAMES - 1):
        values = torch.arange(count * 2.0).reshape(count, 2, 1)
        term = Function(function=lambda e, values=values: values)
        assert torch.equal(term.errors(episode(), slice(10, 11)), values[-1:])
        assert torch.equal(term.errors(episode(), slice(2, 5)), values[2:5])
    for shape in ((FRAMES - 2, 2, 1), (FRAMES, 3, 1), (FRAMES, 2)):
        with pytest.raises(InputError, match="with 11 frames"):
            Function(function=lambda e, shape=shape: torch.zeros(shape)).errors(episode(), ALL)
