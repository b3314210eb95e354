"""Writes every scene of this folder: `python tools/scenes/make_all.py` from the project's root."""

from __future__ import annotations

import ant
import ant_run
import arm
import bounce
import bounce_shot
import bowl
import cartpole
import cloth_lay
import drag
import gates
import hopper
import humanoid
import incline
import pendulum
import pour
import projectile
import push
import quadrotor
import quadruped
import rise
import stack
import swing
import throw
import trot
import tumble_shot
import workbench
from common import write

SCENES = (
    ant,
    ant_run,
    arm,
    bounce,
    bounce_shot,
    bowl,
    cartpole,
    cloth_lay,
    drag,
    gates,
    hopper,
    humanoid,
    incline,
    pendulum,
    pour,
    projectile,
    push,
    quadrotor,
    quadruped,
    rise,
    stack,
    swing,
    throw,
    trot,
    tumble_shot,
    workbench,
)

if __name__ == "__main__":
    for module in SCENES:
        print(write(module.build(), module.__name__))
