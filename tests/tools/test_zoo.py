"""The comparison of a folder of models with MuJoCo."""

from __future__ import annotations

import os
from pathlib import Path

import mujoco
import numpy as np
import pytest

from tools.zoo import exact, states
from tools.zoo.compare import compare, differences
from tools.zoo.files import model_files
from tools.zoo.report import to_markdown
from tools.zoo.states import Touch, load_exact, random_states
from warpsim.scene import Scene, Shape

ZOO = os.environ.get("WARPSIM_ZOO")
STONES = """<mujoco><asset>
<mesh name="a" vertex="-.1 -.1 -.05 .1 -.1 -.05 0 .12 -.05 -.1 -.1 .05 .1 -.1 .05 0 .12 .05"/></asset>
<worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .06"><freejoint/><geom type="mesh" mesh="a" density="500"/></body>
<body pos="0.02 0 .17"><freejoint/><geom type="mesh" mesh="a" density="500"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "stones.xml").write_text(STONES)
    (tmp_path / "part.xml").write_text("<mujocoinclude><worldbody/></mujocoinclude>")
    return tmp_path


def test_models_are_found_and_parts_left_out(folder):
    assert [path.name for path in model_files(folder, [])] == ["stones.xml"]
    assert model_files(folder, ["other"]) == []


def test_half_of_the_states_touch(folder):
    sample = random_states(load_exact(folder / "stones.xml"), 8, seed=1)
    assert sum(bool(state.contacts) for state in sample) >= 4


def test_stones_are_mujocos_contact_for_contact(folder):
    row = compare(folder / "stones.xml", count=8, steps=20, gradients=False)
    assert not row.failure
    assert row.touching >= 4
    assert row.equal == row.touching
    assert row.accelerations == row.states == 8
    assert row.motion < 1e-6
    table = to_markdown([row])
    assert f"{row.equal}/{row.touching}" in table and "1 of 1 models" in table


def test_what_differs_is_said_by_kinds():
    scene = Scene(shapes=[Shape(name="a", kind="box"), Shape(name="b", kind="hull")])
    up = np.array([0.0, 0.0, 1.0])
    touch = Touch((0, 1), -0.01, np.zeros(3), up)
    moved = Touch((0, 1), -0.01, np.array([2e-5, 0.0, 0.0]), up)
    assert differences(scene, [touch], [touch]) == []
    assert [d.reason for d in differences(scene, [touch], [touch, moved])] == ["box–hull: 1/2 points"]
    assert [d.reason for d in differences(scene, [touch], [moved])] == ["box–hull: point 1e-04"]


def test_only_the_normal_with_the_greatest_gap_is_at_the_optimum():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='ellipsoid' size='.1 .2 .3'/><body pos='0 0 .5'><freejoint/>"
        "<geom type='sphere' size='.21'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    up, tilted = (np.array([0.0, s, np.sqrt(1 - s * s)]) for s in (0.0, 1e-5))
    true, off = (Touch((0, 1), -0.01, np.array([0.0, 0.0, 0.295]), n) for n in (up, tilted))
    assert exact.gap_along(model, data, true) == pytest.approx(-0.01, abs=1e-15)
    assert exact.at_the_optimum(model, data, [true], [off])
    assert not exact.at_the_optimum(model, data, [off], [true])
    assert not exact.at_the_optimum(model, data, [true], [true])


def test_the_residual_vanishes_at_the_accelerations_and_nowhere_else(folder):
    model = load_exact(folder / "stones.xml")
    state = next(s for s in random_states(model, 8, seed=1) if s.contacts)
    data = exact.place(model, state)
    at, beside = exact.residual(model, data, state.qacc), exact.residual(model, data, state.qacc + 1e-3)
    assert at < 1e-6 < 1e-4 < beside


def test_a_model_that_does_not_load_says_why(folder):
    (folder / "broken.xml").write_text("<mujoco><worldbody><body><geom type='box'/></body></worldbody></mujoco>")
    row = compare(folder / "broken.xml", count=2, steps=0, gradients=False)
    assert row.failure
    assert row.failure in to_markdown([row])


@pytest.mark.long
@pytest.mark.skipif(not ZOO, reason="WARPSIM_ZOO names no folder of models")
def test_the_zoo_is_mujocos():
    rows = [compare(path, gradients=False) for path in model_files(Path(str(ZOO)), ["scene"])]
    done = [row for row in rows if row.states]
    assert len(done) == len(rows)
    assert sum(row.equal + row.explained for row in done) >= 0.95 * sum(row.touching for row in done)
    assert sum(row.accelerations + row.solved for row in done) >= 0.97 * sum(row.states for row in done)


def test_a_motion_is_that_of_the_finest_tolerance_that_another_confirms(monkeypatch):
    """Of MuJoCo's own motions, whatever ours are; where none confirms another, the finest is the reference."""

    def reference(fine: float, coarse: float, confirming: float) -> float:
        ends = {states.FINE: fine, states.COARSE: coarse, states.CONFIRMING: confirming}
        monkeypatch.setattr(states, "_motion", lambda model, state, steps: np.full((1, 1), ends[state.tolerance]))
        empty = np.zeros(0)
        state = states.State(empty, empty, empty, empty, empty, [], states.FINE)
        return float(states.motion(mujoco.MjModel.from_xml_string("<mujoco/>"), state, 1)[0, 0])

    assert reference(0.3, 0.3 + 9e-7, 0.9) == 0.3
    assert reference(0.5, 0.3, 0.3 + 9e-7) == 0.3
    assert reference(0.5, 0.3, 0.3 + 2e-6) == 0.5


def test_robots_with_mocap_bodies_are_compared(tmp_path):
    """They have a joint of their own here and none in MuJoCo."""
    text = STONES.replace(
        "<worldbody>",
        '<worldbody><body name="hand" mocap="true" pos="0.3 0 0.2"><geom type="sphere" size="0.03"/></body>',
    )
    text = text.replace("</mujoco>", '<equality><weld body1="hand" body2="held"/></equality></mujoco>')
    held = (
        '<body name="held" pos="0.3 0 0.3"><freejoint/><geom type="sphere" size="0.03" mass="0.1"/></body></worldbody>'
    )
    (tmp_path / "held.xml").write_text(text.replace("</worldbody>", held))
    row = compare(tmp_path / "held.xml", count=4, steps=20, gradients=False)
    assert not row.failure
    assert row.equal == row.touching >= 2
    assert row.accelerations == row.states == 4
    assert row.motion < 1e-6
