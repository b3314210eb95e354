"""What the contact solver says of itself: its status, its residual, and a step that has too few places for contacts."""

from __future__ import annotations

import numpy as np
import pytest

from contact_support import object_scene, solid
from rigid_support import evaluation
from warpsim.core.errors import SimulationError
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.constraint.report import solver_text
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Options, Scene
from warpsim.solve.newton import AT_ROUNDING, CONVERGED, NOT_DEFINITE, TOO_FEW_ITERATIONS
from warpsim.tape.checkpointed import CheckpointedTape


def two_boxes(**options) -> Scene:
    """One box slides on the floor, the other on it."""
    return object_scene(
        solid("box", (0.2, 0.2, 0.1), (0.0, 0.0, 0.099), (0.01, 0.02, 0.1)),
        solid("box", (0.1, 0.1, 0.1), (0.05, 0.0, 0.297), (0.02, 0.01, 0.3)),
        options=Options(**options),
    )


def solved(scene: Scene, **values):
    model = compile_model(scene)
    start = {"qd": 0.5 * np.random.default_rng(0).normal(size=model.nv), "warm_start": np.zeros(model.nv)}
    e = evaluation(scene, {**start, **values})
    return e, e.forward().constraint


def test_it_converges_and_says_so():
    _, c = solved(two_boxes())
    iterations, code = c.status.numpy()[0]
    assert code == int(CONVERGED)
    assert 1 < iterations < 20
    assert c.error.numpy()[0] <= 1e-10
    assert solver_text(c, 0).startswith("converged")


def test_too_few_iterations():
    _, c = solved(two_boxes(solver_iterations=2, solver_stop="authored"))
    assert c.status.numpy()[0].tolist() == [2, int(TOO_FEW_ITERATIONS)]
    assert c.error.numpy()[0] > 1e-10
    assert "largest number of iterations" in solver_text(c, 0)


def test_it_stops_at_rounding_error():
    """A tolerance that no arithmetic can reach does not use up the iterations."""
    _, c = solved(two_boxes(solver_tolerance=0.0, solver_iterations=200))
    iterations, code = c.status.numpy()[0]
    assert code == int(AT_ROUNDING)
    assert iterations < 30
    assert c.error.numpy()[0] < 1e-12


def test_a_warm_start_at_the_solution_takes_no_iterations():
    e, c = solved(two_boxes())
    e.state["warm_start"].assign(c.qdd.numpy())
    first = c.qdd.numpy().copy()
    again = e.forward().constraint
    assert again.status.numpy()[0].tolist() == [0, int(CONVERGED)]
    assert (again.qdd.numpy() == first).all()


def test_a_warm_start_that_costs_more_is_left_for_the_free_acceleration():
    """Whatever it is: the same bits, from the same point."""
    e, c = solved(two_boxes())
    made = []
    for bad in (1e6, -1e9, np.nan):
        e.state["warm_start"].assign(np.full_like(c.qdd.numpy(), bad))
        again = e.forward().constraint
        assert again.status.numpy()[0, 1] == int(CONVERGED)
        made.append((again.status.numpy()[0, 0], again.qdd.numpy().copy()))
    assert 1 < made[0][0] < 20
    for count, qdd in made[1:]:
        assert count == made[0][0] and (qdd == made[0][1]).all()


def test_a_hessian_that_is_not_definite():
    """A negative mass, which no scene may hold but a parameter can be set to."""
    e, _ = solved(two_boxes())
    density = e.model.authored["shape.density"]
    density.assign(np.broadcast_to([1000.0, 1000.0, -1000.0], density.shape).astype(density.numpy().dtype))
    Derivation(e.model).run()
    c = e.forward().constraint
    assert c.status.numpy()[0, 1] == int(NOT_DEFINITE)
    assert "not positive definite" in solver_text(c, 0)


def test_too_few_places_for_contacts():
    """The error names the step, the world and the size that would do."""
    model = compile_model(two_boxes(max_contacts=3), worlds=2)
    Derivation(model).run()
    tape = CheckpointedTape(RigidProgram(model, controls=()), steps=4)
    q = np.repeat(model.initial_q[None], 2, axis=0)
    q[0, [2, 9]] += 1.0  # only world 1 touches
    start = {"q": q, "qd": np.zeros((2, model.nv)), "warm_start": np.zeros((2, model.nv))}
    with pytest.raises(SimulationError) as caught:
        tape.forward(start)
    message = str(caught.value)
    assert "step 1" in message
    assert "world 1" in message
    assert "max_contacts" in message
