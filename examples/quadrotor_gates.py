"""A quadrotor takes off and flies through four gates in order, with limited thrust and in air that drags on it.

    python examples/quadrotor_gates.py [--output flight.usda]

The gates are read from the USD file: where they stand, and which way they are to be passed. A smooth path goes through
their middles; iLQR, solved anew every 40 ms over the next 0.64 s, finds the four thrusts that follow it. The drone must
pass each gate, in order and in the right direction, within 5 cm of its middle.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from pxr import Usd, UsdGeom

import warpsim as ws
from warpsim.optimizers import ControlProblem, RecedingHorizon, run_closed_loop

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "gates.usda"
HOLD, HORIZON = 20, 16  # steps per control, controls per plan
LEG, REST = 32, 10  # controls from gate to gate, and after the last
SPEED = 1.6  # m/s through the gates
MOST_THRUST = 6.0  # N per rotor
TOLERANCE = 0.05  # m


def read_gates() -> tuple[torch.Tensor, torch.Tensor]:
    """Middles (4, 3), m, and directions of passage (4, 3) of the gates in the USD file."""
    stage = Usd.Stage.Open(str(SCENE))
    poses = [
        np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.Default()))
        for prim in stage.GetPrimAtPath("/World").GetChildren()
        if prim.GetName().startswith("Gate")
    ]
    return torch.tensor(np.array([p[3, :3] for p in poses])), torch.tensor(np.array([p[0, :3] for p in poses]))


def path_through(start: torch.Tensor, places: torch.Tensor, velocities: torch.Tensor, period: float) -> torch.Tensor:
    """Positions (rows, 3) of a cubic path from rest through places with given velocities, one row per control."""
    points = torch.cat([start[None], places])
    rates = LEG * period * torch.cat([torch.zeros_like(start)[None], velocities])
    s = (torch.arange(LEG) / LEG)[:, None]
    legs = [
        (2 * s**3 - 3 * s**2 + 1) * points[i]
        + (s**3 - 2 * s**2 + s) * rates[i]
        + (3 * s**2 - 2 * s**3) * points[i + 1]
        + (s**3 - s**2) * rates[i + 1]
        for i in range(len(places))
    ]
    after = torch.arange(REST + HORIZON + 2)[:, None] * period
    return torch.cat([*legs, places[-1] + after * velocities[-1]])


def follow(sim: ws.Simulator, path: torch.Tensor) -> RecedingHorizon:
    """A controller whose cost looks at the path from the present control on."""
    hover, period = 9.81 / 4, HOLD * sim.timestep  # N per rotor, for 1 kg; s

    def now() -> int:
        return len(controller.solves)

    def running(state: ws.Observed, thrust: torch.Tensor) -> torch.Tensor:
        off = state.q[..., :3] - path[now() : now() + HORIZON, None]
        return torch.cat([8 * off, 0.3 * state.q[..., 4:], 0.05 * state.qd[..., 3:], 0.03 * (thrust - hover)], -1)

    def terminal(state: ws.Observed) -> torch.Tensor:
        end = now() + HORIZON
        off, slip = state.q[..., :3] - path[end], state.qd[..., :3] - (path[end + 1] - path[end]) / period
        return torch.cat([20 * off, 0.5 * state.q[..., 4:], 0.3 * state.qd[..., 3:], slip], -1)

    limits = dict(lower=[0.0] * 4, upper=[MOST_THRUST] * 4, start=[hover] * 4)
    problem = ControlProblem(sim, HORIZON, running=running, terminal=terminal, hold=HOLD, **limits)
    controller = RecedingHorizon(problem)
    return controller


def passages(flight: torch.Tensor, places: torch.Tensor, directions: torch.Tensor) -> list[tuple[int, float]]:
    """Step and distance from the middle, m, at which positions (steps, 3) first pass each gate after the last one."""
    found, first = [], 0
    for place, direction in zip(places, directions, strict=True):
        ahead = (flight - place) @ direction
        off = (flight - place).norm(dim=-1)
        passed = [
            k for k in range(first, len(flight) - 1) if ahead[k] < 0 <= ahead[k + 1] and off[k] < 0.4
        ]  # through the opening, along its direction
        assert passed, f"the gate at {place.tolist()} was not passed"
        k = passed[0]
        share = float(-ahead[k] / (ahead[k + 1] - ahead[k]))
        at = flight[k] + share * (flight[k + 1] - flight[k])
        found.append((k, float((at - place).norm())))
        first = k
    return found


def main(output: str | None = None) -> list[tuple[int, float]]:
    """Flies the course and checks it."""
    places, directions = read_gates()
    model, drone = ws.Simulator(SCENE), ws.Simulator(SCENE)
    assert float(model.parameter("world.medium_density")[0]) > 1.0, "air should drag on the drone"
    path = path_through(model.state.q[0, :3], places, SPEED * directions, HOLD * model.timestep)
    run = run_closed_loop(drone, follow(model, path), LEG * len(places) + REST)

    with torch.no_grad():
        flight = drone.rollout(controls=run.controls.repeat_interleave(HOLD, 0))
    passed = passages(flight.q[:, 0, :3], places, directions)
    for number, (step, off) in enumerate(passed):
        print(f"gate {number}: passed after {step * model.timestep:.2f} s, {1e3 * off:.1f} mm from its middle")
        assert off < TOLERANCE, "the drone should pass within 5 cm of the middle"
    print(f"thrusts between {run.controls.min():.2f} and {run.controls.max():.2f} N; {run.latency()}")
    assert 0 <= run.controls.min() and run.controls.max() <= MOST_THRUST, "thrusts should stay within their limits"
    if output:
        print("wrote", ", ".join(str(written) for written in flight.save(output)))
    return passed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    main(parser.parse_args().output)
