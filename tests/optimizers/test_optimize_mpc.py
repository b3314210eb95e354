"""Receding horizons on a linear plant, where the best control is Riccati's feedback on the predicted state."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import solve_discrete_are

from cart_problems import START, Q, R, carts_problem, linear_system
from simulator_support import arm
from warpsim.core.errors import InputError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.optimizers import ILQR, RecedingHorizon, run_closed_loop
from warpsim.sim.simulator import Simulator


def plant(mass: float = 1.0) -> Simulator:
    sim = Simulator(scene_from_mjmodel(linear_system()[0]))
    sim.set_parameters({"body.mass": mass * sim.parameter("body.mass")[0]})
    sim.reset(q=START[:2], qd=START[2:])
    return sim


def riccati() -> tuple[np.ndarray, np.ndarray]:
    _, a, b = linear_system()
    p = solve_discrete_are(a, b, Q, R)
    return p, np.linalg.solve(R + b.T @ p @ b, b.T @ p @ a)


@pytest.mark.parametrize(
    ("delay", "mass", "closed_loop"),
    [(0, 1.0, True), (1, 1.0, True), (1, 1.5, True), (3, 1.2, True), (1, 1.5, False)],
)
def test_controls_are_feedback_on_the_predicted_state(delay, mass, closed_loop):
    _, a, b = linear_system()
    _, plant_a, plant_b = linear_system(mass)
    p, gain = riccati()
    controller = RecedingHorizon(carts_problem(8, terminal=p), delay=delay, method=ILQR(closed_loop=closed_loop))
    run = run_closed_loop(plant(mass), controller, 12)
    x, sent = START, [np.zeros(2)] * delay
    for k in range(12):
        ahead = x
        for u in sent[k:]:
            ahead = a @ ahead + b @ u
        sent.append(-gain @ ahead)
        np.testing.assert_allclose(run.controls[k].numpy(), sent[k], atol=1e-9)
        x = plant_a @ x + plant_b @ sent[k]
        np.testing.assert_allclose(torch.cat([run.states["q"][k + 1], run.states["qd"][k + 1]]).numpy(), x, atol=1e-9)
    assert len(run.solves) == 12 and all(s.seconds > 0 and s.after <= s.before for s in run.solves)
    assert "12 solves: median" in run.latency()


def test_plans_are_warm_started():
    controller = RecedingHorizon(carts_problem(30), iterations=3)
    run_closed_loop(plant(), controller, 4)
    first, *later = controller.solves
    assert first.after < 0.5 * first.before  # from nothing
    assert all(solve.after > 0.9 * solve.before for solve in later)  # from the plan of the knot before


def test_a_plant_may_take_smaller_steps_than_the_model():
    real = plant()
    step = real.timestep
    real.set_parameters({"world.timestep": step / 4})
    run = run_closed_loop(real, RecedingHorizon(carts_problem(8)), 3)
    with torch.no_grad():
        motion = real.rollout(controls=run.controls.repeat_interleave(4, 0), q=START[:2], qd=START[2:])
    np.testing.assert_allclose(run.states["q"].numpy(), motion.q[::4, 0].numpy(), atol=1e-12)
    real.set_parameters({"world.timestep": step / 1.5})
    with pytest.raises(InputError, match="not a whole number of the plant's steps"):
        run_closed_loop(real, RecedingHorizon(carts_problem(8)), 3)


def test_wrong_calls():
    with pytest.raises(InputError, match="iterations=0"):
        RecedingHorizon(carts_problem(3), iterations=0)
    with pytest.raises(InputError, match="one world with the same controls"):
        run_closed_loop(Simulator(arm(), controls=("joint_force",)), RecedingHorizon(carts_problem(3)), 1)
