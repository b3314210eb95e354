"""A controller in a loop meets plans through steps that did not converge: it keeps its last plan, says so, goes on."""

from __future__ import annotations

import math
import warnings

import mujoco
import pytest
import torch

from warpsim.core.errors import InputError, UnconvergedError, UnconvergedWarning
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.optimizers import ControlProblem, RecedingHorizon, run_closed_loop
from warpsim.scene import convergence
from warpsim.sim.simulator import Simulator

CART = """<mujoco>
  <option timestep="0.02" gravity="0 0 0" iterations="1"/>
  <worldbody>
    <body name="cart"><joint name="x" type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="1"/></body>
    <body name="crate" pos=".4 .03 .02"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
  </worldbody>
  <actuator><motor joint="x"/></actuator>
</mujoco>"""
"""A cart that converges in one iteration; from 0.2 m on a crate is in its way, where one is mostly not enough."""

KNOTS, HOLD = 5, 8


@pytest.fixture
def one_iteration(monkeypatch) -> None:
    monkeypatch.setattr(convergence, "MIN_ITERATIONS", 1)


def simulator(**options) -> Simulator:
    return Simulator(scene_from_mjmodel(mujoco.MjModel.from_xml_string(CART)), **options)


def pushed(push: float, sim: Simulator | None = None) -> ControlProblem:
    """The cart should go to 1 m; the first plan pushes it as told."""

    def running(states, controls):
        return 1e-3 * controls

    def terminal(states):
        return torch.cat([states.q[..., :1] - 1.0, 0.1 * states.qd[..., :1]], -1)

    limits = dict(lower=[-0.5], upper=[4.0], start=[push])
    return ControlProblem(sim or simulator(), KNOTS, running=running, terminal=terminal, hold=HOLD, **limits)


class _AtRest:
    """A controller that is told at every knot that the cart has not moved yet, so that its plan meets the crate."""

    def __init__(self, controller: RecedingHorizon) -> None:
        self.controller, self.first = controller, {n: v.clone() for n, v in controller.problem.first.items()}

    def __getattr__(self, name: str):
        return getattr(self.controller, name)

    def control(self, state):
        return self.controller.control(self.first)


@pytest.mark.usefixtures("one_iteration")
class TestAPlanThroughTheCrate:
    """Controls of 2 N meet the crate within the horizon."""

    def test_the_last_plan_goes_on_and_the_loop_ends(self):
        problem = pushed(2.0)
        ramp = torch.linspace(2.0, 2.4, KNOTS, dtype=torch.float64)
        problem.start = ramp.clone()
        controller = RecedingHorizon(problem)
        resting = simulator()
        with pytest.warns(UnconvergedWarning) as told:
            run = run_closed_loop(resting, _AtRest(controller), KNOTS + 2)
        assert [bool(solve.trouble) for solve in run.solves] == [True] * (KNOTS + 2)
        assert torch.equal(run.controls[:KNOTS, 0], ramp)  # as planned, knot by knot
        assert torch.equal(run.controls[KNOTS:, 0], ramp[-1:].expand(2))
        texts = [str(w.message) for w in told if issubclass(w.category, UnconvergedWarning)]
        assert len(texts) == 2  # where it began, and where the plan was used up
        assert "control 0 is taken from the last plan" in texts[0] and "world 0 (residual" in texts[0]
        assert f"control {KNOTS}: nothing is left of the last plan" in texts[1]
        assert run.trouble().startswith(f"{KNOTS + 2} of {KNOTS + 2} knots kept the last plan, the first at 0: ")
        assert "did not converge at step" in run.trouble()

    def test_costs_are_those_of_the_plan_that_was_kept(self):
        problem = pushed(2.0)
        controller = RecedingHorizon(problem)
        with pytest.warns(UnconvergedWarning):
            controller.control(problem.first)
        (solve,) = controller.solves
        with torch.no_grad():
            assert solve.before == solve.after == problem.loss(problem.start).item()
        assert solve.iterations == 0

    def test_planning_goes_on_where_it_can_again(self):
        """With the crate out of reach plans are made anew; then in its way again: a new series is told of."""
        problem = pushed(2.0)
        near = {name: value.clone() for name, value in problem.first.items()}
        far = {**near, "q": near["q"].clone()}
        far["q"][0, 1:4] = torch.tensor([50.0, 0.0, 0.0])
        controller = RecedingHorizon(problem)
        with pytest.warns(UnconvergedWarning) as told:
            for state in (near, near, far, near):
                controller.control(state)
        assert [bool(s.trouble) for s in controller.solves] == [True, True, False, True]
        assert controller.solves[2].after < controller.solves[2].before
        assert [str(w.message).partition(" is")[0] for w in told] == ["control 0", "control 3"]

    def test_an_improvement_stays_where_the_next_iteration_fails(self):
        """From 0.2 N the plan improves into the crate, where it cannot be linearized again."""
        controller = RecedingHorizon(pushed(0.2), iterations=2)
        with pytest.warns(UnconvergedWarning, match="control 0"):
            controller.control(controller.problem.first)
        (solve,) = controller.solves
        assert solve.iterations == 1 and solve.after < solve.before and solve.trouble

    def test_it_raises_where_told_to(self):
        controller = RecedingHorizon(pushed(2.0), unconverged="raise")
        with pytest.raises(UnconvergedError, match=r"step \d+, world 0 \(residual") as caught:
            controller.control(controller.problem.first)
        assert caught.value.step > 0 and caught.value.residual > 0.0
        assert any('unconverged="keep"' in note for note in caught.value.__notes__)
        assert not controller.solves

    def test_a_simulator_that_only_warns_plans_with_what_was_computed(self):
        """The problem's own simulators do as the model's."""
        controller = RecedingHorizon(pushed(2.0, simulator(unconverged="warn")))
        with pytest.warns(UnconvergedWarning, match="the gradient goes through"):
            controller.control(controller.problem.first)
        assert not controller.solves[0].trouble


def test_a_plan_that_cannot_be_simulated_is_kept_too():
    """A motor of 1e300 N: nothing of it is finite."""
    controller = RecedingHorizon(pushed(2.0))
    controller.problem.upper = torch.full_like(controller.problem.upper, torch.inf)
    controller.plan = torch.full_like(controller.plan, 1e305)
    with pytest.warns(UnconvergedWarning, match="not finite"):
        sent = controller.control(controller.problem.first)
    assert float(sent) == 1e305 and math.isinf(controller.solves[0].before)


def test_what_the_caller_got_wrong_is_an_error_whatever_was_chosen():
    controller = RecedingHorizon(pushed(0.2))
    first = controller.problem.first
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="'q' of the measured state is not finite"):
            controller.control({**first, "q": first["q"] * math.nan})
        with pytest.raises(InputError, match="'qd' of the measured state has shape"):
            controller.control({**first, "qd": first["qd"][:, 1:]})
        with pytest.raises(InputError, match="lacks 'qd'"):
            controller.control({"q": first["q"]})
    for wrong, words in (
        ({"iterations": 1.5}, "iterations=1.5"),
        ({"delay": 0.5}, "delay=0.5"),
        ({"delay": -1}, "delay=-1"),
    ):
        with pytest.raises(InputError, match=words):
            RecedingHorizon(pushed(0.2), **wrong)
    for knots in (0, -1, 2.5):
        with pytest.raises(InputError, match=f"knots={knots}"):
            run_closed_loop(simulator(), controller, knots)
    with pytest.raises(InputError, match="'skip'; use one of 'keep', 'raise'"):
        RecedingHorizon(pushed(0.2), unconverged="skip")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"knots": 2.5}, "knots=2.5"),
        ({"knots": 0}, "knots=0"),
        ({"hold": 1.5}, "hold=1.5"),
        ({"lower": [1.0], "upper": [-1.0]}, "limits in their order"),
        ({"upper": [math.nan]}, "limits in their order"),
        ({"start": [math.nan]}, "finite controls"),
    ],
)
def test_problems_that_are_none_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        ControlProblem(simulator(), **{"knots": 3, "running": lambda states, controls: controls, **changes})
