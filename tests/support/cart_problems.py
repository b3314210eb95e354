"""Carts on springs as problems of optimal control."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from simulator_support import compiled
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.optimizers import ControlProblem, quadratic_cost
from warpsim.sim.simulator import Simulator

CARTS = """<mujoco>
  <option timestep="0.05" gravity="0 0 0"><flag constraint="disable"/></option>
  <worldbody>
    <body name="a"><joint name="a" type="slide" axis="1 0 0" stiffness="3" damping=".2"/><geom size=".1" mass="1"/>
      <body name="b"><joint name="b" type="slide" axis="1 0 0" stiffness="1"/><geom size=".1" mass=".5"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="a"/><motor joint="b" gear="2"/></actuator>
</mujoco>"""
"""Two carts, one on the other, with springs: a linear system."""


def linear_system(mass: float = 1.0) -> tuple[mujoco.MjModel, np.ndarray, np.ndarray]:
    """The carts and their exact A and B, from MuJoCo's steps of unit states and controls."""
    model = compiled(CARTS)
    model.body_mass *= mass
    columns = []
    for unit in np.eye(6):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.ctrl[:] = unit[:2], unit[2:4], unit[4:]
        mujoco.mj_step(model, data)
        columns.append(np.concatenate([data.qpos, data.qvel]))
    both = np.array(columns).T
    return model, both[:, :4], both[:, 4:]


Q = np.diag([2.0, 1.0, 0.1, 0.3])


R = np.array([[0.3, 0.05], [0.05, 0.2]])


START = np.array([1.0, -0.5, 0.3, 0.8])


def carts_problem(knots: int, *, terminal: np.ndarray = Q, limit: float | None = None, hold: int = 1) -> ControlProblem:
    sim = Simulator(scene_from_mjmodel(linear_system()[0]))
    running, end = quadratic_cost(
        sim, state=torch.tensor(Q), control=torch.tensor(R), terminal=torch.tensor(terminal), q=[0.0, 0.0]
    )
    bounds = {} if limit is None else dict(lower=[-limit, -limit], upper=[limit, limit])
    return ControlProblem(sim, knots, running=running, terminal=end, q=START[:2], qd=START[2:], hold=hold, **bounds)
