"""A double pendulum, and its gradient in a process of its own, so that the precision can be chosen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from warpsim.scene import Body, Joint, Options, Scene, Shape
from warpsim.simulator import Simulator

PROJECT = Path(__file__).resolve().parents[1]


def double_pendulum(timestep: float = 0.002) -> Scene:
    """Two rods, swung high enough to be chaotic."""
    scene = Scene(options=Options(timestep=timestep))
    for name, parent, place in (("upper", None, 0.0), ("lower", "upper", -0.5)):
        scene.bodies.append(Body(name, parent, position=np.array([0.0, 0.0, place])))
        scene.joints.append(Joint(name, "hinge", name, axis=np.array([0.0, 1.0, 0.0])))
        scene.shapes.append(
            Shape(name, "capsule", name, np.array([0.0, 0.0, -0.25]), size=np.array([0.02, 0.2, 0.0]), collides=False)
        )
    scene.joints[0].initial_q, scene.joints[1].initial_q = np.array([2.0]), np.array([1.0])
    return scene


def final_slopes(steps: list[int]) -> list[list[float]]:
    """Gradients of the final lower angle by both initial angles after each number of steps."""
    sim = Simulator(double_pendulum())
    found = []
    for count in steps:
        q = sim.initial_state()["q"][0].clone().requires_grad_()
        sim.rollout(count, q=q, outputs=()).q[-1, 0, 1].backward()
        found.append([float(x) for x in q.grad])
    return found


def slopes_in(precision: str, steps: list[int]) -> np.ndarray:
    """`final_slopes` of a process that computes in the given precision."""
    code = f"import json; from validity_support import final_slopes; print(json.dumps(final_slopes({steps!r})))"
    paths = os.pathsep.join([str(PROJECT), str(PROJECT / "tests")])
    environment = {**os.environ, "WARPSIM_PRECISION": precision, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(done.stdout.splitlines()[-1]))
