"""Every scene of the project runs: finite, solved, and with shallow contacts; the robots stand."""

from pathlib import Path

import numpy as np
import pytest

from warpsim.simulator import Simulator

SCENES = sorted((Path(__file__).resolve().parents[1] / "scenes").glob("*.usda"), key=lambda path: path.name)
OUTPUTS = ("penetration", "solver_status", "body_position")


def _run(path: Path, seconds: float) -> tuple[Simulator, dict[str, np.ndarray]]:
    sim = Simulator(path)
    trajectory = sim.rollout(steps=round(seconds / sim.timestep), outputs=OUTPUTS)
    return sim, {name: trajectory.numpy(name) for name in (*OUTPUTS, "q")}


def _check(found: dict[str, np.ndarray]) -> None:
    assert np.isfinite(found["q"]).all()
    assert found["penetration"].max() < 2e-3
    assert set(np.unique(found["solver_status"])) <= {0, 3}  # converged, or stopped at rounding


@pytest.mark.parametrize("name", ["cartpole", "stack", "throw"])
def test_start(name):
    _check(_run(SCENES[0].with_name(f"{name}.usda"), 0.2)[1])


@pytest.mark.long
@pytest.mark.parametrize("path", SCENES, ids=[path.stem for path in SCENES])
def test_five_seconds(path):
    _check(_run(path, 5.0)[1])


@pytest.mark.long
@pytest.mark.parametrize("name, body", [("quadruped", "/World/Trunk"), ("humanoid", None)])
def test_robots_stand(name, body):
    sim, found = _run(SCENES[0].with_name(f"{name}.usda"), 2.0)
    row = sim.body(body) if body else 1
    row = getattr(row, "index", row)
    height = found["body_position"][:, 0, row, 2]
    assert height.min() > 0.9 * height[0]
