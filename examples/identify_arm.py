"""A 7-dof arm's payload, friction and gains from noisy joint angles, with intervals; then followed while they change.

    python examples/identify_arm.py [--output folder]

MuJoCo stands in for the real arm: it moves through eight random motions, whose joint angles are measured at 100 Hz with
noise of 1 mrad. One call finds 22 values: the payload, and dry friction, damping and servo gain of each
joint. Then samples come one after the other, payload and friction change, and a twin follows them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import warpsim as ws
from warpsim.identification import Estimate, IdentifiedScene

NOISE, INTERVAL, STEPS = 1e-3, 0.01, 5  # rad, s, steps per sample
AXES = ("0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1")
LENGTHS = (0.15, 0.2, 0.2, 0.2, 0.15, 0.1, 0.08)
MASSES = (3.0, 2.5, 2.0, 1.5, 1.2, 0.8, 0.5)
GAINS = (400.0, 400.0, 300.0, 300.0, 150.0, 100.0, 60.0)
DAMPING = (3.0, 3.0, 2.0, 2.0, 1.0, 0.5, 0.3)
FRICTION = (2.0, 2.0, 1.5, 1.5, 0.8, 0.5, 0.3)
PAYLOAD = 1.2
LOOK = tuple(f'rgba="{color} 1" contype="0" conaffinity="0"' for color in (".95 .55 .2", ".2 .22 .25", ".3 .5 .85"))
"""Of the links in turn, and of the payload: shapes to look at, which touch nothing."""


def arm(
    payload: float = PAYLOAD, friction: float = 1.0, damping: float = 1.0, gains: float = 1.0, seed: int | None = None
) -> str:
    """MJCF of the arm with values off by factors; `seed`: each joint's factors are also drawn between 1/1.5 and 1.5."""
    rng = np.random.default_rng(seed)
    spread = np.ones((3, 7)) if seed is None else np.exp(rng.uniform(-np.log(1.5), np.log(1.5), (3, 7)))
    opened, servos = [], []
    for i, (axis, length, mass) in enumerate(zip(AXES, LENGTHS, MASSES, strict=True)):
        side = mass * length**2 / 12 + 1e-3
        opened.append(
            f'<body name="link{i}" pos="0 0 {LENGTHS[i - 1] if i else 0.1}"><joint name="joint{i}" axis="{axis}" '
            f'armature="0.05" damping="{damping * spread[0, i] * DAMPING[i]}" '
            f'frictionloss="{friction * spread[1, i] * FRICTION[i]}"/>'
            f'<inertial pos="0 0 {length / 2}" mass="{mass}" diaginertia="{side} {side} {mass * 1e-3}"/>'
            f'<geom type="capsule" fromto="0 0 0 0 0 {length}" size="{0.045 - 0.004 * i}" {LOOK[i % 2]}/>'
        )
        kp = gains * spread[2, i] * GAINS[i]
        servos.append(f'<position name="servo{i}" joint="joint{i}" kp="{kp}" kv="{kp / 20}"/>')
    tool = (
        f'<body name="payload" pos="0 0.03 0.1"><inertial pos="0 0 0" mass="{payload}" '
        f'diaginertia="1e-3 1e-3 1e-3"/><geom type="box" size=".04 .04 .04" {LOOK[2]}/></body>'
    )
    return (
        f'<mujoco model="arm"><option timestep="{INTERVAL / STEPS}" integrator="implicitfast" tolerance="1e-12"/>'
        f"<worldbody>{''.join(opened)}{tool}{'</body>' * 7}</worldbody>"
        f"<actuator>{''.join(servos)}</actuator></mujoco>"
    )


def targets(rows: int, rng: np.random.Generator) -> np.ndarray:
    """(rows, 7) smooth random servo targets, rad."""
    time = INTERVAL * np.arange(rows)[:, None, None]
    size, rate, phase = (rng.uniform(*side, (3, 7)) for side in ((0.1, 0.35), (1.0, 6.0), (0.0, 2 * np.pi)))
    return (size * np.sin(rate * time + phase)).sum(1) + rng.uniform(-0.6, 0.6, 7)


def measured(seed: int, count: int = 8, rows: int = 150) -> list[ws.Recording]:
    """Joint angles of the true arm, by MuJoCo, with noise."""
    model = mujoco.MjModel.from_xml_string(arm(seed=1))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    made = []
    for k in range(count):
        wanted = targets(rows, rng)
        mujoco.mj_resetData(model, data)
        data.qpos[:] = start = wanted[0] + rng.normal(0, 0.05, 7)
        angles = np.full((rows, 7), np.nan)
        for row in range(rows):
            angles[row] = data.qpos
            data.ctrl[:] = wanted[row]
            mujoco.mj_step(model, data, STEPS)
        angles += rng.normal(0, NOISE, angles.shape)
        times = INTERVAL * np.arange(rows)
        made.append(ws.Recording(f"motion {k}", times, {"q": angles}, wanted, q0=start, qd0=np.zeros(7)))
    return made


def truth() -> np.ndarray:
    """(22,) what the data were made with, in the order of `PARAMETERS`; gains as factors of the guess."""
    real, guess = (mujoco.MjModel.from_xml_string(text) for text in (arm(seed=1), arm(**GUESS)))
    gains = real.actuator_gainprm[:, 0] / guess.actuator_gainprm[:, 0]
    damping = real.dof_damping.reshape(7, -1)[:, 0]
    return np.r_[real.body("payload").mass, np.stack([real.dof_frictionloss, damping, gains], -1).ravel()]


GUESS = dict(payload=0.6, friction=0.7, damping=1.4, gains=0.8)
PARAMETERS = [
    ws.Parameter("body.mass:payload", lower=0.0, upper=10.0),
    *(
        parameter
        for i in range(7)
        for parameter in (
            ws.Parameter(f"limit.friction_loss:joint{i}", lower=0.0, upper=10.0),
            ws.Parameter(f"joint.damping:joint{i}", lower=0.0, upper=20.0),
            ws.Parameter((f"actuator.gain:servo{i}", f"actuator.bias:servo{i}"), tied=True, lower=0.2, upper=5.0),
        )
    ),
]
FOLLOWED = [
    ws.Parameter("body.mass:payload", lower=0.0, upper=10.0),
    ws.Parameter("limit.friction_loss", tied=True, lower=0.0, upper=5.0),
]
BEFORE, AFTER = dict(payload=1.0, friction=1.0), dict(payload=2.0, friction=0.6)
"""What is followed, before and after half of the time: the arm picks something up, and its joints warm up at once."""


def fit(scene: Path, recordings: list[ws.Recording], **options: Any) -> IdentifiedScene:
    """The 22 values."""
    chosen = dict(noise={"q": NOISE}, robust=None, validation=0.25, iterations=12)
    return ws.identify(recordings, scene, PARAMETERS, **{**chosen, **options})


def follow(scene: Path, rows: int = 600, seed: int = 0) -> tuple[list[Estimate], float]:
    """What a twin says after each sample of an arm that changes half-way, and its processor time per update, s."""
    rng = np.random.default_rng(seed)
    twin = ws.Twin(scene, FOLLOWED, rate=1 / INTERVAL, noise={"q": NOISE})
    before, after = (mujoco.MjModel.from_xml_string(arm(**values)) for values in (BEFORE, AFTER))
    data, wanted = mujoco.MjData(before), targets(rows, rng)
    data.qpos[:] = wanted[0]
    made, spent = [], []
    for row in range(rows):
        sample = data.qpos + rng.normal(0, NOISE, 7)
        began = time.process_time()
        made.append(twin.push({"q": sample}, wanted[row]))
        if made[-1].updated:
            spent.append(time.process_time() - began)
        data.ctrl[:] = wanted[row]
        mujoco.mj_step(before if row < rows // 2 else after, data, STEPS)
    return made, float(np.median(spent[2:]))


def show(fitted: Path, recording: ws.Recording) -> Path:
    """A page of the fitted arm in a recording's motion."""
    sim = ws.Simulator(fitted)
    motion = sim.rollout(
        controls=np.repeat(recording.controls, STEPS, axis=0),
        q=recording.q0,
        qd=recording.qd0,
        outputs=("body_position", "body_rotation"),
        keep_every=STEPS,
    )
    return motion.save(fitted.parent / "motion.html")[0]


def main(output: str | None = None) -> IdentifiedScene:
    """Fits, follows, prints, checks."""
    with tempfile.TemporaryDirectory() as folder:
        scene = Path(folder) / "arm.xml"
        scene.write_text(arm(**GUESS), encoding="utf-8")
        recordings = measured(0)
        found = fit(scene, recordings)
        print(found)
        inside = np.abs(found.values - truth()) <= found.uncertainty.half_width
        print(f"{inside.sum()} of {len(inside)} intervals hold the truth")
        assert inside.sum() >= 18, "95 % of the intervals should hold the truth"
        if output:
            files = [*found.save(output), show(Path(output) / "fitted.xml", recordings[0])]
            print("wrote", ", ".join(str(path) for path in files))
        scene.write_text(arm(**BEFORE), encoding="utf-8")
        estimates, spent = follow(scene)
        for estimate in estimates[50::50]:
            print(estimate)
        late = estimates[500]  # 2 s after the change
        print(f"{1 / spent:.0f} updates per second of one core")
        assert np.abs(late.values / np.array([2.0, 0.6]) - 1).max() < 0.05, "the change should have been followed"
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a folder for report and fitted scene")
    main(parser.parse_args().output)
