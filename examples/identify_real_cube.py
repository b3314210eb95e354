"""A cube's friction, center of mass and inertia from tosses that were measured, with intervals that are true.

    python examples/identify_real_cube.py [--data tosses.npz] [--output folder]

With the 400 real tosses of the ContactNets data set (Pfrommer, Halm, Posa 2020; `states`, `lengths` and `rate` in an
.npz file) it fits 32 of them and predicts 32 others. Without, MuJoCo makes a few tosses in the same format, with values
that the scene file does not know.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import mujoco
import numpy as np

import warpsim as ws
from warpsim.identification import IdentifiedScene, read_recordings

SCENE = """<mujoco model="cube_toss">
  <option timestep="0.003378378378378378" cone="elliptic"/>
  <worldbody>
    <geom name="table" type="plane" size="2 2 .1"/>
    <body name="cube" pos="0 0 .3"><freejoint name="free"/>
      <inertial pos="{com}" mass=".37" diaginertia="{inertia} {inertia} {inertia}"/>
      <geom name="cube" type="box" size=".0524 .0524 .0524" priority="1" friction="{friction} .005 .0001"/>
    </body>
  </worldbody>
</mujoco>"""
GUESS = dict(com="0 0 0", inertia=0.00081, friction=0.18)
TRUTH = dict(com="0 0 0.005", inertia=0.00105, friction=0.25)
WIDTH, SAMPLES, RATE = 0.1048, 80, 148.0
PARAMETERS = [
    ws.Parameter("shape.friction:cube", [0], lower=0.02, upper=1.0, prior=0.2, scale=0.02),
    ws.Parameter("body.com:cube", prior=0.01, scale=0.005),
    ws.Parameter("body.inertia:cube", [0, 1, 2], tied=True, lower=0.3, upper=3.0, prior=0.5, scale=0.1),
    ws.Parameter("shape.solref:cube", [0], lower=0.0075, upper=0.1, start=0.02, prior=0.02, scale=0.003),
    ws.Parameter("shape.solref:cube", [1], lower=0.05, upper=2.0, start=0.5, prior=0.5, scale=0.1),
]


def made_up(path: Path, count: int = 12, samples: int = 40, seed: int = 0) -> Path:
    """Tosses by MuJoCo with a little noise, in the format of the real ones."""
    model = mujoco.MjModel.from_xml_string(SCENE.format(**TRUTH))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    states = np.full((count * samples, 13), np.nan)
    for toss in range(count):
        mujoco.mj_resetData(model, data)
        rotation = rng.normal(size=4)
        data.qpos[:] = [*rng.normal(0, 0.1, 2), rng.uniform(0.12, 0.16), *rotation / np.linalg.norm(rotation)]
        data.qvel[:] = [*rng.normal(0, 0.6, 2), -0.5, *rng.normal(0, 3, 3)]
        for sample in range(samples):
            states[toss * samples + sample] = [*data.qpos, *data.qvel]
            mujoco.mj_step(model, data, 2)
    states[:, :3] += 2e-4 * rng.normal(size=(len(states), 3))
    np.savez(path, states=states, lengths=np.full(count, samples), rate=RATE)
    return path


def fit(scene: Path, data: Path, real: bool) -> IdentifiedScene:
    """Fits some tosses and holds the others out."""
    tosses = read_recordings(data)
    if real:
        order = np.random.default_rng(0).permutation(len(tosses))
        tosses = [tosses[i] for i in order[:64]]
    return ws.identify(
        tosses,
        scene,
        PARAMETERS,
        noise={"q": [0.002] * 3 + [0.03] * 3},
        velocity_noise=[0.2] * 3 + [1.0] * 3,
        samples=SAMPLES,
        start="smoothed",
        robust=1.0,
        softening=0.004 if real else (0.004, 0.0),
        substeps=2,
        iterations=4 if real else 8,
        validation=0.5 if real else 0.25,
        difference=0.1 if real else 0.01,
    )


def toss(folder: Path) -> Path:
    """A page of four tosses of the fitted cube, side by side."""
    sim = ws.Simulator(folder / "fitted.xml", worlds=4)
    rng = np.random.default_rng(1)
    q, qd = np.zeros((4, 7)), np.zeros((4, 6))
    q[:, 2], q[:, 3:] = 0.25, rng.normal(size=(4, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    qd[:, 0], qd[:, 3:] = 0.6, rng.normal(0, 5, (4, 3))
    shown = ("body_position", "body_rotation", "contact_points", "contact_point_forces")
    motion = sim.rollout(round(0.9 / sim.timestep), q=q, qd=qd, outputs=shown, keep_every=2)
    return motion.save(folder / "toss.html")[0]


def main(data: str | None = None, output: str | None = None) -> IdentifiedScene:
    """Fits, prints, checks."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        scene = folder / "cube.xml"
        scene.write_text(SCENE.format(**GUESS), encoding="utf-8")
        real = data is not None and Path(data).is_file()
        found = fit(scene, Path(data) if real and data else made_up(folder / "tosses.npz"), real)
        print(found)
        mean = found.errors["held out, from a smoothed start"].mean
        position, rotation = 100 * mean["q free position"] / WIDTH, np.degrees(mean["q free rotation"])
        print(f"held-out tosses: {position:.1f} % of the cube's width, {rotation:.1f}°")
        if real:
            assert position < 9.0 and rotation < 11.0, "tosses it has not seen should be predicted"
        else:
            values = dict(zip(found.names, found.values, strict=True))
            assert abs(values["shape.friction:cube[0]"] - 0.25) < 0.03, "friction should have been found"
            assert abs(values["body.com:cube[2]"] - 0.005) < 0.001, "the center of mass should have been found"
            assert abs(values["body.inertia:cube factor"] / (0.00105 / 0.00081) - 1) < 0.05, "and the inertia"
        if output:
            print("wrote", ", ".join(str(path) for path in (*found.save(output), toss(Path(output)))))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="the real tosses, .npz")
    parser.add_argument("--output", help="a folder for report, fitted scene and a page of tosses")
    arguments = parser.parse_args()
    main(arguments.data, arguments.output)
