"""The gradient of a very long rollout in contact, against central differences.

An arm under drives drags a block round over the floor on a short rod. The motion is not chaotic, the block never stops
sliding, and contact forces begin smoothly (an impedance that starts from 0): so differences mean something after
100,000 steps.
"""

from __future__ import annotations

import pytest
import torch

from warpsim.io.mjcf import read_mjcf
from warpsim.scene.actuation import Drive
from warpsim.sim.simulator import Simulator

MODEL = """
<mujoco>
  <option timestep="0.002" cone="elliptic" tolerance="1e-14" iterations="100"/>
  <default><geom solimp="0 0.95 0.01 0.5 2"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="upper" pos="0 0 .05">
      <joint name="shoulder" axis="0 0 1" damping=".5"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1" contype="0" conaffinity="0"/>
      <body name="fore" pos=".4 0 0">
        <joint name="elbow" axis="0 0 1" damping=".3"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass=".7" contype="0" conaffinity="0"/>
      </body>
    </body>
    <body name="block" pos=".9 0 .05">
      <freejoint/>
      <geom type="box" size=".08 .06 .05" mass=".5" friction=".4 .005 .0001"/>
    </body>
  </worldbody>
  <equality><connect body1="block" body2="fore" anchor="-.1 0 0"/></equality>
</mujoco>
"""
PARAMETERS = ("shape.friction", "body.mass", "drive.stiffness", "drive.damping")


@pytest.fixture(scope="module")
def sim(tmp_path_factory) -> Simulator:
    path = tmp_path_factory.mktemp("drag") / "drag.xml"
    path.write_text(MODEL, encoding="utf-8")
    scene = read_mjcf(path)
    for joint, stiffness, damping in (("shoulder", 60.0, 6.0), ("elbow", 40.0, 4.0)):
        scene.drives.append(Drive(f"{joint}_drive", joint, stiffness=stiffness, damping=damping))
    return Simulator(scene, controls=("drive_target",))


def drag(sim: Simulator, steps: int, offset: torch.Tensor, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
    """A mean over the block's path and its end, under targets that turn and swing for the whole time."""
    t = sim.timestep * torch.arange(steps, dtype=torch.float64)
    targets = torch.stack([0.5 * t + 0.2 * torch.sin(0.9 * t), 0.5 + 0.2 * torch.sin(1.3 * t)], -1) + offset
    motion = sim.rollout(controls=targets, parameters=parameters, keep_every=steps // 50, memory="64MB")
    path = motion.body_position("block")[:, 0, :2]
    return path[-1, 0] + 0.7 * path[-1, 1] + 3.0 * path.mean()


@pytest.mark.parametrize("steps", [1_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_gradient_of_a_long_drag(sim, steps):
    own = {name: sim.parameter(name)[0] for name in PARAMETERS}
    given = {name: value.clone().requires_grad_() for name, value in own.items()}
    offset = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    drag(sim, steps, offset, given).backward()

    inputs = {"offset": (offset, torch.tensor([0.6, -0.8], dtype=torch.float64))}
    inputs |= {name: (given[name], own[name]) for name in PARAMETERS}
    for name, (value, direction) in inputs.items():
        ours = float((value.grad * direction).sum())
        ends = []
        for step in (1e-4, -1e-4):
            moved = {**own, "offset": torch.zeros(2, dtype=torch.float64)}
            moved[name] = moved[name] + step * direction
            with torch.no_grad():
                ends.append(float(drag(sim, steps, moved.pop("offset"), moved)))
        slope = (ends[0] - ends[1]) / 2e-4
        assert abs(slope) > 1e-4 and abs(ours - slope) < 1e-6 * abs(slope), (name, ours, slope)
