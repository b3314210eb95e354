"""System identification: friction, masses, inertias, damping and drag of a USD scene, fitted to noisy measurements.

    python examples/identification.py [--output fitted.usda]

The measurements come from another simulator, MuJoCo, with values that the USD file does not know, plus 1 % of noise:
where a block slides, how the two joints of a driven arm turn, how a ball flies. The file's own guesses are 50 % off or
more. Levenberg–Marquardt fits all eight at once and says how sure it is of each. Then the fitted scene must predict
another experiment, which it has not seen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np
import torch

import warpsim as ws
from warpsim.optimizers import Result, RolloutProblem, Variable, Variables, minimize

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "workbench.usda"
STEPS, EVERY, NOISE, SEED = 400, 4, 0.01, 1
PER_DEGREE = np.pi / 180  # USD's gains of hinges are per degree

TRUTH = {  # USD attribute → (component, value in USD units)
    "/World/Wood.physics:dynamicFriction": (0, 0.35),
    "/World/Upper.physics:mass": (0, 1.5),
    "/World/Upper.physics:diagonalInertia": (1, 0.04),
    "/World/Upper/Joint.newton:damping": (0, 0.2 * PER_DEGREE),
    "/World/Upper/Fore.physics:mass": (0, 0.8),
    "/World/Upper/Fore.physics:diagonalInertia": (1, 0.012),
    "/World/Upper/Fore/Joint.newton:damping": (0, 0.1 * PER_DEGREE),
    "/World/Physics.mjc:option:density": (0, 1.2),
}
REALITY = """<mujoco>
  <option timestep="0.002" density="1.2" viscosity="1.8e-5" cone="elliptic" tolerance="1e-10"/>
  <worldbody>
    <geom name="table" type="box" size="3 .5 .05" pos="2 0 .45" friction=".35 .005 .0001"/>
    <body name="block" pos="-.5 0 .5499"><freejoint/>
      <geom type="box" size=".1 .08 .05" mass="1" friction=".35 .005 .0001"/></body>
    <body name="upper" pos="0 2 2"><joint name="shoulder" axis="0 1 0" damping=".2"/>
      <inertial pos="0 0 -.2" mass="1.5" diaginertia=".03 .04 .02"/>
      <body name="fore" pos="0 0 -.4"><joint name="elbow" axis="0 1 0" damping=".1"/>
        <inertial pos="0 0 -.2" mass=".8" diaginertia=".008 .012 .006"/></body></body>
    <body name="ball" pos="-1 -1 1.5"><freejoint/><geom type="sphere" size=".1" mass=".06"/></body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator>
</mujoco>"""
SEEN = [0, 7, 8, 9, 11]  # of q: the block's x, both joint angles, the ball's x and z


def torques(seed: int) -> np.ndarray:
    """Random smooth motor torques, (steps, 2), N·m."""
    rng = np.random.default_rng(seed)
    size, rate, phase = rng.uniform(1, 3, (3, 1, 2)), rng.uniform(4, 14, (3, 1, 2)), rng.uniform(0, 6, (3, 1, 2))
    return (size * np.sin(rate * 0.002 * np.arange(STEPS)[:, None] + phase)).sum(0)


def velocities(push: float, forward: float, up: float) -> np.ndarray:
    """Initial velocities (14,): of the block along the table, and of the ball."""
    qd = np.zeros(14)
    qd[[0, 8, 10]] = push, forward, up
    return qd


def reality(controls: np.ndarray, qd: np.ndarray) -> torch.Tensor:
    """What MuJoCo measures, without noise: (samples, 5)."""
    model = mujoco.MjModel.from_xml_string(REALITY)
    data = mujoco.MjData(model)
    data.qvel[:] = qd
    samples = [data.qpos[SEEN].copy()]
    for control in controls:
        data.ctrl[:] = control
        mujoco.mj_step(model, data)
        samples.append(data.qpos[SEEN].copy())
    return torch.tensor(np.array(samples)[::EVERY])


def main(output: str | None = None) -> Result:
    """Fits, reports, and predicts a second experiment."""
    sim = ws.Simulator(SCENE)
    controls, qd = torch.tensor(torques(SEED)), velocities(3.0, 6.0, 4.0)
    clean = reality(controls.numpy(), qd)
    noise = NOISE * clean.std(0)
    data = clean + noise * torch.tensor(np.random.default_rng(SEED).normal(size=clean.shape))

    variables = Variables(
        [Variable(sim.attribute(path), positive=True, components=[place]) for path, (place, _) in TRUTH.items()]
    )
    problem = RolloutProblem(
        sim,
        variables,
        lambda motion: ((motion.q[..., SEEN] - data[:, None]) / noise).transpose(0, 1).flatten(1),
        controls=controls,
        qd=qd,
        keep_every=EVERY,
    )
    result = minimize(problem, "levenberg_marquardt", iterations=40, change=1e-6, patience=3)
    check_parameters(problem, result)

    held_out = dict(controls=torch.tensor(torques(SEED + 1)), qd=velocities(2.5, 5.0, 5.0))
    expected = reality(held_out["controls"].numpy(), held_out["qd"])
    with torch.no_grad():
        before, after = (problem.rollout(x[None], **held_out).q[:, 0][:, SEEN] for x in (problem.start, result.x))
    wrong, right = (float(((q - expected) / expected.std(0)).square().mean().sqrt()) for q in (before, after))
    print(f"another experiment: predicted {100 * wrong:.1f} % off before the fit, {100 * right:.2f} % after")
    assert right < NOISE, "the fitted scene should predict an experiment it has not seen better than it was measured"
    if output:
        motion = sim.rollout(parameters=problem.values(result.x), controls=controls, qd=qd)
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return result


def check_parameters(problem: RolloutProblem, result: Result) -> None:
    """Prints and checks each estimate: within 1 %, or within three of its reported standard deviations."""
    fit = result.report
    print(f"{result.message}; {result.iterations} iterations, {result.seconds:.1f} s")
    values = problem.values(result.x)
    # x is the logarithm of a value over its guess, so its deviations are relative ones
    for (path, (place, truth)), value, deviation in zip(TRUTH.items(), values.values(), fit.deviation, strict=True):
        found = float(value.detach().reshape(-1)[place])
        error = abs(found / truth - 1)
        print(
            f"  {path:45s} {found:9.5f} ± {100 * float(deviation):.2f} %, truth {truth:9.5f}: {100 * error:.2f} % off"
        )
        assert error < max(0.01, 3 * float(deviation)) and deviation < 0.05, f"{path} should have been found"
    print(" ".join(fit.sentences))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    main(parser.parse_args().output)
