"""Receding-horizon control: a cart-pole swings up and balances, planned anew every 30 ms with a model that is wrong.

    python examples/cartpole_mpc.py [--output swing_up.usda]

The controller plans 1.2 s ahead with the cart-pole of the USD file in steps of 10 ms, by iLQR that begins with its last
plan. The plant is the same file, in steps of 2 ms, with a pole that is 20 % heavier, and each control reaches it one
period late, which is the time that planning may take. From hanging, the pole must be upright within 3 s and stay so, on
a rail of 2 m to each side and with at most 20 N.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch

import warpsim as ws
from warpsim.optimizers import ILQR, ClosedLoop, ControlProblem, RecedingHorizon, run_closed_loop

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "cartpole.usda"
POLE_MASS = "/World/Cart/Pole/Rod.physics:mass"
STEP, HOLD = 0.01, 3  # of the planner: s, and steps per control
KNOTS, CONTROLS, SETTLED = 40, 200, 100  # of the horizon, of the run, and after which the pole must stand
HANGING = dict(q=[0.0, math.pi], qd=[0.0, 0.0])  # m, rad


def running(state: ws.Observed, control: torch.Tensor) -> torch.Tensor:
    """What each knot costs: half the square of these."""
    cart, pole = state.q[..., :1], state.q[..., 1:]
    return torch.cat([0.3 * cart, 1 - torch.cos(pole), 0.6 * torch.sin(pole), 0.05 * state.qd, 0.1 * control], -1)


def terminal(state: ws.Observed) -> torch.Tensor:
    """What the end of the horizon costs."""
    cart, pole = state.q[..., :1], state.q[..., 1:]
    return torch.cat([2 * cart, 8 * (1 - torch.cos(pole)), 8 * torch.sin(pole), 0.6 * state.qd], -1)


def main(output: str | None = None) -> ClosedLoop:
    """Runs the loop and checks what it did."""
    model = ws.Simulator(SCENE)
    model.set_parameters({"world.timestep": STEP})
    nudge = 0.5 * torch.sin(torch.linspace(0, 4 * math.pi, KNOTS))[:, None]  # hanging still would be an equilibrium
    problem = ControlProblem(
        model, KNOTS, running=running, terminal=terminal, lower=[-1.0], upper=[1.0], start=nudge, hold=HOLD, **HANGING
    )
    plant = ws.Simulator(SCENE)
    heavier = 1.2 * plant.attribute(POLE_MASS).value
    plant.set_parameters({POLE_MASS: heavier})
    plant.reset(**HANGING)
    controller = RecedingHorizon(problem, delay=1, method=ILQR(closed_loop=False, lengths=(1.0, 0.5, 0.2, 0.05)))
    run = run_closed_loop(plant, controller, CONTROLS)

    cart, pole = run.states["q"].T
    tilt = torch.acos(torch.cos(pole))  # rad from upright, whichever way round it went
    up = int((tilt > 0.1).nonzero().max()) + 1
    period = HOLD * model.timestep
    print(f"upright after {up * period:.2f} s; the cart strayed {cart.abs().max():.2f} m from the middle")
    print(f"at the end {math.degrees(tilt[-1]):.3f}° off upright, {1e3 * cart[-1].abs():.1f} mm from the middle")
    print(f"a new plan every {1e3 * period:.0f} ms; {run.latency()}")
    print(run.trouble() or "every plan was made from steps that converged")
    assert up <= SETTLED, "the pole should stand within 3 s"
    assert cart.abs().max() < 2.0, "the cart should stay on its rail"
    assert run.controls.abs().max() <= 1.0, "the force should stay within its limits"
    if output:
        motion = plant.rollout(
            controls=run.controls.repeat_interleave(round(period / plant.timestep), 0), keep_every=10
        )
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    main(parser.parse_args().output)
