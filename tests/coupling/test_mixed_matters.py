"""Scenes in which some matters meet bodies and others do not, parts of matters, and what cannot be solved together."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import warp as wp

import warpsim as ws
from small_matters import Push, decay, push
from warpsim.core.errors import InputError, RangeError, SceneError
from warpsim.coupling.compiled import compile_scene
from warpsim.coupling.program import CoupledProgram, _check_integrator
from warpsim.matter.matter import CompileContext
from warpsim.scene import Body, Joint, Options, Scene, Shape


def scene(*matters, **options) -> Scene:
    """A body of 2 kg that slides along x."""
    made = Scene(matters=list(matters), options=Options(gravity=np.zeros(3), timestep=0.01, **options))
    made.bodies.append(Body("cart", mass=2.0, com=np.array([0.0, 0.3, 0.0]), inertia=np.eye(3)))
    made.joints.append(Joint("rail", "slide", "cart", axis=np.array([1.0, 0.0, 0.0])))
    made.shapes.append(Shape("box", "box", "cart", size=np.full(3, 0.1), collides=False))
    return made


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_each_matter_s_wrench_counts_whatever_others_do(order):
    """Two push with 3 N and 5 N, one between them meets no body; with the control's 4 N that is 6 m/s² of 2 kg."""
    matters = [push("a", 3.0), decay("b"), push("c", 5.0)]
    sim = ws.Simulator(scene(*(matters[k] for k in order)), worlds=2, controls=("wrench", "b.push"))
    controls = torch.zeros(10, 2, sim.control_size, dtype=torch.float64)
    wrench = sim.control_slice("wrench")
    controls[:, :, wrench.start + 6] = torch.tensor([4.0, -4.0], dtype=torch.float64)
    made = sim.rollout(controls=controls)
    assert made.qd[-1, :, 0].tolist() == pytest.approx([6.0 * 0.1, 2.0 * 0.1], rel=1e-12)
    plain = ws.Simulator(scene(push("a", 3.0))).rollout(10)
    assert plain.qd[-1, 0, 0].item() == pytest.approx(1.5 * 0.1, rel=1e-12)


def test_a_matter_is_shown_bodies_at_the_start_of_the_step():
    """Its place and that of its center of mass: the pushes report both."""
    sim = ws.Simulator(scene(push("a", 0.0)), outputs=("a.seen",))
    start = {"q": [0.25], "qd": [3.0]}
    seen = sim.rollout(2, start=start)["a.seen"][:, 0].numpy()
    assert seen[1].tolist() == pytest.approx([0.25, 0.3, 3.0, 2.0])  # x of the origin, y of the com, velocity, mass
    assert seen[2].tolist() == pytest.approx([0.25 + 0.03, 0.3, 3.0, 2.0])


def test_worlds_in_groups_keep_what_controls_hold():
    compiled = compile_scene(scene(push("a", 3.0), decay("b")), worlds=5)
    program = compiled.program(("wrench",), ("body_position",))
    assert isinstance(program, CoupledProgram)
    parts = program.split(2)
    assert [part.worlds for part in parts] == [2, 3]
    for part, first in zip(parts, (0, 2), strict=True):
        assert part._held["b.push"].shape == (part.worlds, 2)
        assert part._held["b.push"].ptr == program._held["b.push"][first:].ptr
        assert [f.shape[0] for f in part.state] == [part.worlds] * len(part.state)


def test_names_that_no_matter_has_are_refused():
    compiled = compile_scene(scene(decay("b")))
    for controls, outputs, words in ((("b.pusch",), (), "b.push"), ((), ("b.levels",), "output")):
        with pytest.raises(ws.WarpsimError, match=words):
            CoupledProgram(compiled.model, compiled.matters, controls=controls, outputs=outputs)


def test_explanations_are_asked_of_the_bodies_first_and_then_of_each_matter():
    program = CoupledProgram.__new__(CoupledProgram)
    work = SimpleNamespace(rigid=object(), matters={"a": 1, "b": 2})
    told = {"rigid": None, "a": None, "b": "b is torn"}
    program.rigid = SimpleNamespace(explain=lambda w, world: told["rigid"])
    program.matters = tuple(
        SimpleNamespace(name=n, explain=lambda w, world, n=n: told[n] and f"{told[n]} in world {world} of {w}")
        for n in ("a", "b")
    )
    assert program.explain(work, 3) == "b is torn in world 3 of 2"
    told["a"] = "a is gone"
    assert program.explain(work, 0) == "a is gone in world 0 of 1"
    told["rigid"] = "too few places"
    assert program.explain(work, 0) == "too few places"
    told.update(dict.fromkeys(told))
    assert program.explain(work, 0) is None


def test_the_largest_residual_of_bodies_and_matters_counts():
    program = CoupledProgram.__new__(CoupledProgram)
    work = SimpleNamespace(rigid=object(), matters={"a": 0, "b": 0})
    found = {"rigid": np.array([[0.0, 2.0]]), "a": None, "b": np.array([[1.0, 0.5]])}
    program.rigid = SimpleNamespace(unsolved=lambda w, values: found["rigid"], shortage=lambda w: "short")
    program.matters = tuple(SimpleNamespace(name=n, unsolved=lambda w, v, n=n: found[n]) for n in ("a", "b"))
    assert program.unsolved(work, None).tolist() == [[1.0, 2.0]] and program.shortage(work) == "short"
    found.update(rigid=None, b=None)
    assert program.unsolved(work, None) is None
    program.rigid = None
    assert program.unsolved(work, None) is None and program.shortage(work) is None


def test_what_cannot_be_solved_together_is_refused():
    matters = [SimpleNamespace(name="cloth"), SimpleNamespace(name="rope")]
    for model, words in (
        (SimpleNamespace(options=SimpleNamespace(integrator="rk4"), has_impacts=False), "together with cloth, rope"),
        (SimpleNamespace(options=SimpleNamespace(integrator="euler"), has_impacts=True), "impacts=True"),
    ):
        with pytest.raises(SceneError, match=words):
            _check_integrator(model, matters)
    _check_integrator(SimpleNamespace(options=SimpleNamespace(integrator="euler"), has_impacts=False), matters)


def test_parameters_that_must_be_positive_are_named_with_their_worlds():
    description = decay("b")
    description.positive = ("rate",)
    compiled = compile_scene(scene(description), worlds=3)
    compiled.check_values("b.rate", np.array([1.0, 2.0, 3.0]))
    with pytest.raises(RangeError, match=r"'b\.rate' was given -1; it must be above 0") as caught:
        compiled.check_values("b.rate", np.array([1.0, 0.0, -1.0]))
    assert caught.value.worlds == (1, 2)


def test_a_part_of_a_matter_has_views_of_its_parameters_and_fields_of_its_worlds():
    context = CompileContext(5, wp.get_device("cpu"), ("", "cart"), scene())
    matter = Push(push("a", 3.0), context)
    part = matter.part(1, 4)
    assert part.worlds == 3 and matter.worlds == 5
    assert part.authored["force"].ptr == matter.authored["force"][1:4].ptr == part.physical["force"].ptr
    assert [f.shape for f in part.outputs] == [(3, 4)] and [f.shape for f in matter.outputs] == [(5, 4)]


def test_names_of_a_scene_are_found_for_a_matter():
    context = CompileContext(1, wp.get_device("cpu"), ("", "cart"), scene())
    assert context.body("cart") == 1 and context.shape("box") == 0 and context.body_of_shape(0) == 1
    for call, word in ((context.body, "body"), (context.shape, "shape")):
        with pytest.raises(InputError, match=word):
            call("wagon")


def test_initial_values_of_another_shape_are_refused():
    wrong = decay("b")
    wrong.initial["level"] = np.zeros((2, 2))
    with pytest.raises((InputError, ValueError, TypeError)):
        compile_scene(scene(wrong))
