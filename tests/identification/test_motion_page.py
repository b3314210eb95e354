"""The page of a fit in motion: measured poses as ghosts, over the predictions that they belong to."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import warpsim as ws
from identification_support import CUBE, GUESS, NOISE, PENDULUM, pendulum_recordings, toss_recordings
from warpsim.identification.motion_page import motion_page

MASS = [ws.Parameter("body.mass:bob", lower=0.1, upper=9)]


def test_ghosts_of_free_bodies_are_where_they_were_measured(tmp_path):
    (tmp_path / "cube.xml").write_text(CUBE.format(friction=0.2, com=0))
    tosses = toss_recordings(3, 2, 12, friction=0.2, com=0.0)
    states = np.array(tosses[1].channels["states"])
    states[7] = np.nan
    tosses[1].channels["states"][:] = states
    parameters = [ws.Parameter("shape.friction:cube", [0], lower=0.02, upper=1.0)]
    fit = ws.identify(tosses, tmp_path / "cube.xml", parameters, substeps=2, iterations=1, check=False, validation=0.0)
    page = motion_page(fit, [1, 2])
    assert [(take.name, take.ghost, take.over) for take in page.takes] == [
        ("toss 1", False, None),
        ("toss 1, measured", True, 0),
        ("toss 2", False, None),
        ("toss 2, measured", True, 2),
    ]
    shown = page.takes[1]
    expected = states[:, :3].copy()
    expected[7] = expected[6]  # nothing was measured: as before
    np.testing.assert_allclose(shown.positions[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(shown.times, np.arange(12) / 148, atol=1e-9)
    np.testing.assert_allclose(page.takes[0].times, shown.times)


def test_ghosts_of_joints_are_posed_by_their_angles(tmp_path):
    """MuJoCo says where the bob's center is at the measured angles; a shorter recording ends earlier."""
    (tmp_path / "pendulum.xml").write_text(PENDULUM.format(**GUESS))
    recordings = pendulum_recordings(3, 1, samples=24)
    fit = ws.identify(
        recordings, tmp_path / "pendulum.xml", MASS, noise={"joint:hinge": NOISE}, iterations=1, check=False,
        validation=0.0,
    )  # fmt: skip
    takes = motion_page(fit, [0, 2]).takes
    assert [len(take.times) for take in takes] == [24, 24, 14, 14]
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "pendulum.xml"))
    data = mujoco.MjData(model)
    for sample in (0, 5, 13):
        data.qpos[:] = recordings[2].channels["joint:hinge"][sample]
        mujoco.mj_kinematics(model, data)
        made = takes[3].rotations[sample, 0]
        assert abs(abs(made @ data.xquat[1]) - 1) < 1e-9


def test_no_ghost_where_no_coordinate_was_measured(tmp_path):
    sensed = PENDULUM.replace("</actuator>", '</actuator><sensor><jointvel name="rate" joint="hinge"/></sensor>')
    (tmp_path / "pendulum.xml").write_text(sensed.format(**GUESS))
    sim = ws.Simulator(tmp_path / "pendulum.xml")
    swing = sim.rollout(40, qd=[1.0], outputs=("sensors",))
    rates = {"sensor:rate": swing.sensor("rate")[:, 0].numpy()}
    recordings = [
        ws.Recording(f"swing {k}", swing.times, rates, np.zeros((41, 1)), np.zeros(1), np.ones(1)) for k in range(2)
    ]
    fit = ws.identify(recordings, sim.scene, MASS, iterations=1, check=False, validation=0.0)
    assert [take.ghost for take in motion_page(fit, [0]).takes] == [False]


@pytest.mark.parametrize("channel", ["body_position:cube", "body_rotation:cube"])
def test_half_of_a_pose_is_enough_for_a_ghost(tmp_path, channel):
    (tmp_path / "cube.xml").write_text(CUBE.format(friction=0.2, com=0))
    tosses = []
    for toss in toss_recordings(2, 2, 10, friction=0.2, com=0.0):
        states = toss.channels["states"]
        part = states[:, :3] if "position" in channel else states[:, 3:7]
        tosses.append(ws.Recording(toss.name, toss.times, {channel: part}, None, states[0, :7], states[0, 7:]))
    parameters = [ws.Parameter("shape.friction:cube", [0], lower=0.02, upper=1.0)]
    fit = ws.identify(tosses, tmp_path / "cube.xml", parameters, substeps=2, iterations=1, check=False, validation=0.0)
    predicted, measured = motion_page(fit, [0]).takes
    same, other = ("rotations", "positions") if "position" in channel else ("positions", "rotations")
    np.testing.assert_allclose(getattr(measured, same), getattr(predicted, same), atol=1e-6)
    part = tosses[0].channels[channel]
    np.testing.assert_allclose(getattr(measured, other)[1:, 0], part[1:], atol=1e-6)
