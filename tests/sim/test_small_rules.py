"""Rules at their borders: noise before the first step, inertias at zero, columns of joints, shapes of errors."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

import warpsim as ws
from warpsim.core.errors import InputError, RangeError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.io.saved_motion import _columns
from warpsim.objective.function import _frames
from warpsim.particles.domain import Domain
from warpsim.rigid.model.parameter_checks import _check_inertias
from warpsim.sim import sensor_noise
from warpsim.sim.mjcf_export import scene_to_mjcf


def test_what_was_measured_before_the_first_step_has_no_noise(monkeypatch):
    monkeypatch.setattr(sensor_noise, "noise_levels", lambda sensors: np.array([1.0, 0.0]))
    noise = sensor_noise.SensorNoise(SimpleNamespace(sensors=None), 3)
    exact = torch.ones(3, 2, 2, dtype=torch.float64)
    found = noise.add({sensor_noise.OUTPUT: exact}, [-1, 0, 1])[sensor_noise.OUTPUT]
    assert torch.equal(found[0], exact[0])
    assert (found[1:, :, 0] != 1.0).all() and (found[1:, :, 1] == 1.0).all()
    one = noise.add_one({sensor_noise.OUTPUT: exact[1]}, 0)[sensor_noise.OUTPUT]
    assert torch.equal(one, found[1])


@pytest.mark.parametrize(("least", "refused"), [(0.0, False), (-1e-3, True), (0.2, False)])
def test_a_rod_has_no_inertia_about_itself(least, refused):
    values = np.array([[[1.0, 1.0, least, 0.0, 0.0, 0.0]]])
    changed = np.ones(values.shape, dtype=bool)
    if refused:
        with pytest.raises(RangeError, match="principal inertia is negative"):
            _check_inertias("body.inertia", values, changed)
    _check_inertias("body.inertia", values, changed & (not refused))


def test_columns_follow_the_sizes_of_joints():
    assert _columns([1, 7, 2], [2, 0, 1]) == [8, 9, 0, *range(1, 8)]


def test_particles_may_be_within_reach_and_not_beyond():
    domain = Domain.around([0.0, 0.0, 0.0], [1.0, 0.5, 0.25], 0.125)
    low, high = domain.reach
    assert domain.inside(low) and not domain.inside(low - 1e-9)
    assert domain.inside(high - 1e-9) and not domain.inside(high + 1e-9)
    assert (low <= 0.0).all() and (high >= [1.0, 0.5, 0.25]).all()


@pytest.mark.parametrize("shape", [(5, 2), (5, 3, 1), (3, 2, 1), (6, 2, 1)])
def test_errors_of_a_wrong_shape_are_refused(shape):
    episode = SimpleNamespace(times=np.arange(5.0), sim=SimpleNamespace(worlds=2))
    with pytest.raises(InputError, match=r"needed: \(frames, worlds, m\) with 5 frames \(or 4 steps\) and 2 worlds"):
        _frames("f", torch.zeros(shape), episode, slice(0, 5))


def test_errors_for_steps_stand_at_the_frames_before_the_last():
    episode = SimpleNamespace(times=np.arange(5.0), sim=SimpleNamespace(worlds=2))
    errors = torch.arange(8.0).reshape(4, 2, 1)
    assert torch.equal(_frames("f", errors, episode, slice(1, 3)), errors[1:3])
    assert torch.equal(_frames("f", errors, episode, slice(4, 5)), errors[3:])
    full = torch.arange(10.0).reshape(5, 2, 1)
    assert torch.equal(_frames("f", full, episode, slice(4, 5)), full[4:])


def test_a_servo_of_a_damping_ratio_has_the_damping_of_mujoco():
    """−2 ζ √(kp m) of the file as MuJoCo compiles it, in our model and in the file that is written."""
    text = """<mujoco><worldbody><body name="b"><joint name="j" axis="0 1 0" armature="0.3"/>
      <geom name="g" type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2" density="800"/></body></worldbody>
      <actuator><position name="a" joint="j" gear="2" kp="30" dampratio="0.7"/></actuator></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    assert model.actuator_biasprm[0, 2] < 0.0
    scene = scene_from_mjmodel(model)
    scene.actuators[0] = replace(scene.actuators[0], damping_ratio=0.7, bias=np.array([0.0, -30.0, 0.0]))
    own = ws.Simulator(scene).parameter("actuator.bias")[0, 0, 2]
    assert float(own) == pytest.approx(model.actuator_biasprm[0, 2], rel=1e-9)
    again = mujoco.MjModel.from_xml_string(scene_to_mjcf(scene)[0])
    assert again.actuator_biasprm[0, :3] == pytest.approx(model.actuator_biasprm[0, :3], rel=1e-9)
