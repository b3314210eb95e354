"""Scenes from text, from MuJoCo's models and specifications: the same as from the file they were written to."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

import warpsim as ws
from warpsim.core.errors import InputError, SceneError, UnknownNameError, UnsupportedError

ARM = """
<mujoco model="arm">
  <worldbody>
    <body name="arm"><joint name="h" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/></body>
  </worldbody>
  <actuator><motor name="m" joint="h"/></actuator>
  <keyframe><key name="raised" qpos="0.7" qvel="-0.2" ctrl="0.1"/></keyframe>
</mujoco>
"""


def path_of(source, steps: int = 20, **options) -> np.ndarray:
    sim = ws.Simulator(source, **options)
    controls = np.full((steps, sim.control_size), 0.3)
    return sim.rollout(controls=torch.from_numpy(controls)).q.detach().numpy()


def mujoco_path(model: mujoco.MjModel, steps: int = 20, key: int | None = None) -> np.ndarray:
    data = mujoco.MjData(model)
    if key is not None:
        mujoco.mj_resetDataKeyframe(model, data, key)
    found = [data.qpos.copy()]
    for _ in range(steps):
        data.ctrl[:] = 0.3
        mujoco.mj_step(model, data)
        found.append(data.qpos.copy())
    return np.array(found)


@pytest.mark.parametrize("make", [str, mujoco.MjModel.from_xml_string, mujoco.MjSpec.from_string])
def test_every_source_moves_as_mujoco(make, tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text(ARM)
    model = mujoco.MjModel.from_xml_string(ARM)
    ours = path_of(make(ARM))
    assert np.array_equal(ours, path_of(file))
    assert np.abs(ours.reshape(21, -1) - mujoco_path(model)).max() < 1e-9
    raised = path_of(make(ARM), keyframe="raised").reshape(21, -1)
    assert np.abs(raised - mujoco_path(model, key=0)).max() < 1e-9
    with pytest.raises(UnknownNameError, match="raised"):
        ws.Simulator(make(ARM), keyframe="lifted")


def test_edits_of_a_model_count_and_later_ones_do_not():
    model = mujoco.MjModel.from_xml_string(ARM)
    model.body_mass[1] *= 3
    sim = ws.Simulator(model)
    expected = mujoco_path(model)
    model.body_mass[1] *= 3
    ours = sim.rollout(controls=torch.full((20, 1), 0.3, dtype=torch.float64)).q.detach().numpy().reshape(21, -1)
    assert np.abs(ours - expected).max() < 1e-9
    assert np.array_equal(
        sim.with_worlds(1)
        .rollout(controls=torch.full((20, 1), 0.3, dtype=torch.float64))
        .q.detach()
        .numpy()
        .reshape(21, -1),
        ours,
    )


def test_attached_and_replicated_models():
    spec = mujoco.MjSpec.from_string(ARM)
    frame = spec.worldbody.add_frame(pos=[0, 0.5, 0.2])
    frame.attach_body(mujoco.MjSpec.from_string(ARM).body("arm"), "left-", "")
    scene = ws.load_scene(spec)
    assert [body.name for body in scene.bodies] == ["arm", "left-arm"]
    assert np.abs(path_of(spec).reshape(21, -1) - mujoco_path(spec.compile())).max() < 1e-9
    text = ARM.replace('<body name="arm">', '<replicate count="3" offset="0 0.2 0"><body name="arm">')
    text = text.replace("</body>", "</body></replicate>").replace('joint="h"', 'joint="h1"')
    text = text.replace('qpos="0.7" qvel="-0.2"', "")
    assert len(ws.load_scene(text).bodies) == 3
    assert np.abs(path_of(text).reshape(21, -1) - mujoco_path(mujoco.MjModel.from_xml_string(text))).max() < 1e-9


def test_a_usd_file_with_a_wrong_line_names_the_line(tmp_path):
    path = tmp_path / "wrong é.usda"
    path.write_text('#usda 1.0\ndef Xform "World"\n{\n    double x = \n}\n')
    with pytest.raises(SceneError, match=r"wrong é\.usda:[45]:\d+: \S.*check the path and the file's syntax"):
        ws.load_scene(path)


def test_what_cannot_be_read_is_refused():
    with pytest.raises(InputError, match="MjModel"):
        ws.load_scene(3.0)
    with pytest.raises(SceneError, match="MuJoCo cannot compile the XML text"):
        ws.load_scene("<mujoco><nonsense/></mujoco>")
    broken = mujoco.MjSpec.from_string(ARM)
    broken.actuator("m").target = "nothing"
    with pytest.raises(SceneError, match="MjSpec"):
        ws.load_scene(broken)
    implicit = ARM.replace("<worldbody>", '<option integrator="implicit"/><worldbody>')
    with pytest.raises(UnsupportedError):
        ws.Simulator(implicit)
    with pytest.warns(ws.UnsupportedPhysicsWarning, match="arm has physics"):
        ws.Simulator(implicit.replace('"implicit"', '"Euler" noslip_iterations="3"'))
