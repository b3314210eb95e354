"""A gripper that closes on a box, lifts it and holds it by friction alone."""

from __future__ import annotations

import numpy as np

from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Body, Drive, Joint, Options, Scene, Shape
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.memory import Memory

HALF = 0.03
"""m: half the box's edge."""
SQUEEZE = 15.0
"""N per finger."""


def gripper() -> Scene:
    """Two fingers that slide along x on a hand that slides along z; a box of 0.2 kg between them on the floor."""
    up, across = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    material = dict(friction=np.array([1.0, 0.005, 1e-4]), condim=4, solimp=np.array([0.98, 0.995, 0.001, 0.5, 2.0]))
    scene = Scene(options=Options(timestep=0.002, impratio=100.0, max_contacts=40))
    scene.bodies = [Body("hand", mass=1.0, com=np.zeros(3), inertia=0.01 * np.eye(3))]
    scene.joints = [Joint("lift", "slide", "hand", axis=up)]
    scene.drives = [Drive("lift", "lift", stiffness=2e4, damping=400.0)]
    scene.shapes = [Shape("floor", "plane", **material)]
    for name, side in (("left", -1.0), ("right", 1.0)):
        place = np.array([side * (HALF + 0.02), 0.0, HALF])
        scene.bodies.append(Body(name, "hand", place, mass=0.1, com=np.zeros(3), inertia=1e-4 * np.eye(3)))
        scene.joints.append(Joint(name, "slide", name, axis=-side * across, damping=5.0))
        scene.shapes.append(Shape(name, "box", name, size=np.array([0.01, 0.02, 0.02]), **material))
    scene.bodies.append(Body("box", position=np.array([0.0, 0.0, HALF])))
    scene.joints.append(Joint("box", "free", "box"))
    scene.shapes.append(Shape("box", "box", "box", size=np.full(3, HALF), mass=0.2, **material))
    return scene


def test_lifts_a_box_and_holds_it():
    """Closes for 0.5 s, lifts by 10 cm in 1 s, holds for 5 s; the box slips less than 1 mm."""
    model = compile_model(gripper())
    Derivation(model).run()
    h = 0.002
    close, lift, hold = round(0.5 / h), round(1.0 / h), round(5.0 / h)
    steps = close + lift + hold
    height = 0.101 * np.clip((np.arange(steps) - close) / lift, 0.0, 1.0)
    force = np.zeros((steps, 1, model.nv))
    force[:, 0, 1:3] = SQUEEZE
    program = RigidProgram(model, controls=("joint_force", "drive_target"), outputs=("solver_status",))
    tape = CheckpointedTape(program, steps=steps, memory=Memory(segment=8))
    start = {"q": model.initial_q[None], "qd": model.initial_qd[None], "warm_start": np.zeros((1, model.nv))}
    inputs = {"joint_force": force, "drive_target": np.ascontiguousarray(height[:, None, None])}
    with tape.forward(start, inputs, keep_states=True, keep_outputs=True, differentiate=False) as run:
        q, status = run.states["q"].numpy()[:, 0], run.outputs["solver_status"].numpy()
    lifted, held = q[:, 5] - HALF, q[:, 5] - q[:, 0]  # q: lift, two fingers, the box
    assert (status == 0).all()
    assert lifted[close + lift + 100 :].min() > 0.1
    assert np.ptp(held[close:]) < 1e-3, (held[close], held[close + lift], held[-1])
