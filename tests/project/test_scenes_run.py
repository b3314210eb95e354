"""Every scene of the project runs: finite, solved, and with shallow contacts; the robots stand."""

from pathlib import Path

import numpy as np
import pytest

from warpsim.sim.simulator import Simulator

SCENES = sorted((Path(__file__).resolve().parents[2] / "scenes").glob("*.usda"), key=lambda path: path.name)
OUTPUTS = ("penetration", "solver_status", "body_position")


def _run(path: Path, seconds: float) -> tuple[Simulator, dict[str, np.ndarray]]:
    sim = Simulator(path)
    trajectory = sim.rollout(steps=round(seconds / sim.timestep), outputs=OUTPUTS)
    return sim, {name: trajectory.numpy(name) for name in (*OUTPUTS, "q")}


def _check(found: dict[str, np.ndarray]) -> None:
    assert np.isfinite(found["q"]).all()
    assert found["penetration"].max() < 2e-3
    assert set(np.unique(found["solver_status"])) <= {0, 3}  # converged, or stopped at rounding


@pytest.mark.parametrize("path", SCENES, ids=[path.stem for path in SCENES])
def test_five_seconds(path):
    _check(_run(path, 5.0)[1])


@pytest.mark.parametrize("name, body", [("quadruped", "/World/Trunk"), ("humanoid", "/World/Pelvis")])
def test_robots_stand(name, body):
    sim, found = _run(SCENES[0].with_name(f"{name}.usda"), 2.0)
    height = found["body_position"][:, 0, sim.body(body).index, 2]
    assert height.min() > 0.95 * height[0]


def test_incline():
    """The brick, below its friction angle, creeps less than 1 µm in 10 s; the block slides as Coulomb's law says."""
    sim, found = _run(SCENES[0].with_name("incline.usda"), 10.0)
    block, brick = (sim.body(f"/World/{name}").index for name in ("Block", "Brick"))
    path = found["body_position"][:, 0] - found["body_position"][0, 0]
    assert np.linalg.norm(path[:, brick], axis=1).max() < 1e-6
    time = sim.timestep * np.arange(len(path))[: round(5.0 / sim.timestep)]  # it then leaves the slab
    angle = np.radians(25.0)
    expected = 0.2 * time + 0.5 * 9.81 * (np.sin(angle) - 0.3 * np.cos(angle)) * time**2
    along = path[: len(time), block] @ [np.cos(angle), 0.0, -np.sin(angle)]
    assert np.abs(along - expected).max() < 1e-3 * expected[-1]
