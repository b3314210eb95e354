"""Robots of MuJoCo's public zoo, where they stand beside the project: they load, and accelerate as in MuJoCo."""

from __future__ import annotations

import os
import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

from contact_support import ask_mujoco, ask_ours, converging, given_contacts
from warpsim.io.mjcf import read_mjcf, scene_from_mjmodel

ZOO = Path(os.environ.get("WARPSIM_ZOO", Path(__file__).resolve().parents[3] / "shared" / "zoo"))
SCENES = [path for path in sorted(ZOO.glob("*/*.xml")) if re.search("<worldbody>|<include", path.read_text())]
TENDONS = [ZOO / "tetheria_aero_hand_open" / "right_hand.xml", ZOO / "iit_softfoot" / "softfoot.xml"]
COMPENSATED = [ZOO / "trossen_wxai" / "trossen_ai_bimanual.xml"]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.long
@pytest.mark.parametrize("path", SCENES, ids=name_of)
def test_every_scene_loads(path):
    scene = read_mjcf(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    assert len(scene.bodies) == model.nbody - 1
    assert (len(scene.actuators), len(scene.tendons)) == (model.nactuator, model.ntendon)


@pytest.mark.long
@pytest.mark.parametrize("path", TENDONS + COMPENSATED, ids=name_of)
def test_accelerations_match_mujoco(path):
    if not path.exists():
        pytest.skip(f"{path} is not there")
    model, rng = converging(mujoco.MjModel.from_xml_path(str(path))), np.random.default_rng(0)
    low, high = model.actuator_ctrlrange.T
    states = []
    for _ in range(8):
        q = model.qpos0.copy()
        mujoco.mj_integratePos(model, q, 0.2 * rng.normal(size=model.nv), 1.0)
        states.append((q, 0.3 * rng.normal(size=model.nv), np.zeros(model.na), rng.uniform(low, high)))
    sample, scene = ask_mujoco(model, states), scene_from_mjmodel(model)
    scene.options.solver_tolerance = 1e-13
    with given_contacts(sample):
        ours = ask_ours(scene, sample)
    assert (np.abs(ours.qacc - sample.qacc).max(1) < 1e-9 * np.abs(sample.qacc).max(1)).all()
