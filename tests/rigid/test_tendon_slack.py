"""Where a fixed tendon's spring is slack: as told, else at its joints' references, each by its coefficient."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.sim.simulator import Simulator

PAIR = """<mujoco>
  <worldbody>
    <body><joint name="a" type="hinge" ref="17" axis="0 1 0"/><geom size=".1"/>
      <body pos=".3 0 0"><joint name="b" type="slide" ref=".25" axis="1 0 0"/><geom size=".1"/></body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="both" stiffness="3"><joint joint="a" coef="2"/><joint joint="b" coef="-1.5"/></fixed>
    <fixed name="one" stiffness="3"><joint joint="b" coef="4"/></fixed>
    <fixed name="told" stiffness="3" springlength=".1 .2"><joint joint="b" coef="4"/></fixed>
  </tendon>
</mujoco>"""


def test_a_spring_is_slack_where_it_is_told_or_at_the_references():
    scene = scene_from_mjmodel(mujoco.MjModel.from_xml_string(PAIR))
    for tendon in scene.tendons[:2]:
        tendon.spring_range = None
    found = Simulator(scene).parameter("tendon.spring_range")[0].numpy()
    both, one = 2 * np.radians(17.0) - 1.5 * 0.25, 4 * 0.25
    assert found == pytest.approx(np.array([[both, both], [one, one], [0.1, 0.2]]))
