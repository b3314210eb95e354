"""Made-up recordings with known values, by MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np

from warpsim.identification import Recording

PENDULUM = """<mujoco model="pendulum">
  <option timestep="0.005"/>
  <worldbody>
    <body name="bob">
      <joint name="hinge" axis="0 1 0" damping="{damping}"/>
      <inertial pos="0 0 -.5" mass="{mass}" diaginertia=".05 .05 .01"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
</mujoco>"""
GUESS = dict(damping=0.2, mass=1.0)
TRUTH = dict(damping=0.35, mass=1.4)
NOISE = 0.01


def pendulum_recordings(
    count: int, seed: int, samples: int = 60, noise: float = NOISE, common: float = 0.0, *, speeds: bool = False
) -> list[Recording]:
    """Swings of a driven pendulum, measured every 10 ms.

    Args:
        count: Recordings; they differ in length.
        seed: Of torques, starts and noise.
        samples: Of the longest.
        noise: Standard deviation of each angle, rad.
        common: Standard deviation of an error that all samples of a recording share, rad.
        speeds: Whether velocities are measured, too, without noise.
    """
    model = mujoco.MjModel.from_xml_string(PENDULUM.format(**TRUTH))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    made = []
    for k in range(count):
        mujoco.mj_resetData(model, data)
        start = rng.uniform(-1, 1, 1)
        data.qpos[:] = start
        length = samples - (k % 3) * 5
        controls = np.repeat(rng.uniform(-3, 3, (length // 10 + 1, 1)), 10, 0)[:length]
        angles, rates = np.full((2, length, 1), np.nan)
        for sample in range(length):
            angles[sample], rates[sample] = data.qpos, data.qvel
            data.ctrl[:] = controls[sample]
            mujoco.mj_step(model, data, 2)
        angles += noise * rng.normal(size=angles.shape) + common * rng.normal()
        channels = {"joint:hinge": angles} | ({"joint_velocity:hinge": rates} if speeds else {})
        made.append(Recording(f"swing {k}", 0.01 * np.arange(length), channels, controls, q0=start, qd0=np.zeros(1)))
    return made


CUBE = """<mujoco model="cube">
  <option timestep="0.003378378378378378" cone="elliptic"/>
  <worldbody>
    <geom name="table" type="plane" size="2 2 .1"/>
    <body name="cube" pos="0 0 .3"><freejoint name="free"/>
      <inertial pos="{com} 0 0" mass="0.37" diaginertia="0.00081 0.00081 0.00081"/>
      <geom name="cube" type="box" size="0.0524 0.0524 0.0524" priority="1" friction="{friction} .005 .0001"/>
    </body>
  </worldbody>
</mujoco>"""


def toss_recordings(count: int, seed: int, samples: int, *, friction: float, com: float) -> list[Recording]:
    """Tosses of a cube at 148 Hz by MuJoCo, "states" with a little noise, in the format of the real ones."""
    model = mujoco.MjModel.from_xml_string(CUBE.format(friction=friction, com=com))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    made = []
    for k in range(count):
        mujoco.mj_resetData(model, data)
        quaternion = rng.normal(size=4)
        data.qpos[:] = [*rng.normal(0, 0.1, 2), rng.uniform(0.11, 0.14), *quaternion / np.linalg.norm(quaternion)]
        data.qvel[:] = [*rng.normal(0, 0.6, 2), -0.5, *rng.normal(0, 3, 3)]
        states = np.full((samples, 13), np.nan)
        for sample in range(samples):
            states[sample] = [*data.qpos, *data.qvel]
            mujoco.mj_step(model, data, 2)
        states[:, :3] += 1e-4 * rng.normal(size=(samples, 3))
        made.append(Recording(f"toss {k}", np.arange(samples) / 148, {"states": states}))
    return made
