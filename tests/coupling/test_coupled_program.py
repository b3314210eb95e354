"""Scenes with and without other matter: rigid ones go the rigid program's way; a matter sees all it is told."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
import warp as wp

import warpsim as ws
from warpsim.core.precision import quat, real, vec3
from warpsim.coupling.compiled import compile_scene
from warpsim.coupling.program import CoupledProgram
from warpsim.matter import Matter, MatterDescription, MatterKind, UnitQuaternions, register_matter
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape.memory import Memory
from warpsim.tape.program import Arrays, Field

SCENES = Path(__file__).resolve().parents[2] / "scenes"


@wp.kernel
def _decay_kernel(
    rate: wp.array(dtype=real),
    timestep: wp.array(dtype=real),
    push: wp.array2d(dtype=real),
    level: wp.array2d(dtype=real),
    after: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    after[w, i] = level[w, i] + timestep[w] * (push[w, i] - rate[w] * level[w, i])


@wp.kernel
def _square_kernel(rate: wp.array(dtype=real), squared: wp.array(dtype=real)):
    w = wp.tid()
    squared[w] = rate[w] * rate[w]


class Decay(Matter):
    """Levels that sink at a rate which is the square of the authored one."""

    def __init__(self, description, context) -> None:
        super().__init__(description, context)
        shape = (self.worlds, len(description.initial["level"]))
        self.state = (Field("level", shape, real),)
        self.controls = (Field("push", shape, real),)
        self.physical = {"squared": wp.zeros(self.worlds, dtype=real, device=self.device)}

    def derive(self) -> None:
        wp.launch(_square_kernel, dim=self.worlds, inputs=[self.authored["rate"]], outputs=[self.physical["squared"]])

    def finish(self, state, inputs, work, around, next_state, outputs) -> None:
        given = [self.physical["squared"], around.timestep, inputs.push, state.level]
        wp.launch(_decay_kernel, dim=state.level.shape, inputs=given, outputs=[next_state.level])


class DecayKind(MatterKind):
    name = "decay"

    def compile(self, description, context) -> Decay:
        return Decay(description, context)


register_matter(DecayKind())


def decay(name: str = "decay", **parameters: float) -> MatterDescription:
    values = {"rate": np.array(parameters.get("rate", 1.5))}
    return MatterDescription("decay", name, parameters=values, initial={"level": np.array([1.0, 2.0])})


def launches(program) -> list[tuple]:
    """Kernels and sizes that one recorded step launches."""
    space = {
        kind: Arrays(kind, {f.name: wp.zeros(f.shape, dtype=f.dtype, requires_grad=f.differentiable) for f in fields})
        for kind, fields in (("state", program.state), ("input", program.inputs), ("output", program.outputs))
    }
    after = Arrays("state", {n: wp.zeros_like(a) for n, a in space["state"].items()})
    tape = wp.Tape()
    work = program.make_work(_FreeArena())
    with tape:
        program.step(space["state"], space["input"], work, after, space["output"], tape=tape)
    return [(entry[0].key, tuple(entry[1])) for entry in tape.launches if not callable(entry)]


class _FreeArena:
    """Hands out arrays of their own."""

    def array(self, shape, dtype, *, differentiable: bool = True, accumulator: bool = False) -> wp.array:
        return wp.zeros(shape, dtype=dtype, requires_grad=differentiable)


def test_rigid_scene_launches_what_the_rigid_program_does() -> None:
    scene = ws.load_scene(SCENES / "pendulum.usda")
    compiled = compile_scene(scene, worlds=2)
    program = compiled.program(("joint_force",), ("body_position",))
    assert type(program) is RigidProgram
    alone = launches(program)
    scene.matters.append(decay())
    coupled = compile_scene(scene, worlds=2).program(("joint_force",), ("body_position",))
    assert type(coupled) is CoupledProgram
    assert launches(coupled) == [*alone, ("_decay_kernel", (2, 2))]


def test_matter_that_meets_no_body_leaves_the_bodies_bits() -> None:
    scene = ws.load_scene(SCENES / "pendulum.usda")
    alone = ws.Simulator(scene, worlds=2).rollout(20)
    scene = ws.load_scene(SCENES / "pendulum.usda")
    scene.matters += [decay(), decay("other", rate=0.5)]
    sim = ws.Simulator(scene, worlds=2)
    made = sim.rollout(20)
    assert torch.equal(made.q, alone.q) and torch.equal(made.qd, alone.qd)
    h = sim.timestep
    for name, rate in (("decay", 1.5), ("other", 0.5)):
        expected = np.array([1.0, 2.0]) * (1.0 - h * rate**2) ** 20
        np.testing.assert_allclose(made[f"{name}.level"][-1, 1].numpy(), expected, rtol=1e-13)


def test_derived_parameters_carry_gradients_to_authored_ones() -> None:
    sim = ws.Simulator(ws.Scene(matters=[decay()]), worlds=3)
    rate = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    made = sim.rollout(30, parameters={"decay.rate": rate}, memory=Memory(segment=7))
    (found,) = torch.autograd.grad(made["decay.level"][-1].sum(), rate)
    h, r = sim.timestep, rate.detach()
    expected = 3.0 * 30 * (1.0 - h * r**2) ** 29 * (-2.0 * h * r)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=0.0)


def test_worlds_of_a_scene_without_bodies_are_shared_by_threads() -> None:
    sim = ws.Simulator(ws.Scene(matters=[decay()]), worlds=3)
    rate = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    found = []
    for threads in (1, 2):
        level = sim.rollout(12, parameters={"decay.rate": rate}, threads=threads)["decay.level"]
        found.append((level.detach(), *torch.autograd.grad(level[-1].sum(), rate)))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])
    assert (found[0][1] < 0.0).all()


def test_controls_of_a_matter_are_zero_unless_given() -> None:
    sim = ws.Simulator(ws.Scene(matters=[decay()]))
    assert sim.control_names == ("decay.push",) and sim.control_size == 2
    push = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    pushed = sim.rollout(controls=push)["decay.level"][-1] - sim.rollout(4)["decay.level"][-1]
    h, keep = sim.timestep, 1.0 - sim.timestep * 1.5**2
    torch.testing.assert_close(pushed[0], torch.full((2,), h * sum(keep**k for k in range(4)), dtype=torch.float64))
    (gradient,) = torch.autograd.grad(pushed.sum(), push)
    torch.testing.assert_close(gradient[:, 0], h * keep ** torch.arange(3.0, -1.0, -1.0, dtype=torch.float64))


def test_names_are_refused_where_they_cannot_be() -> None:
    for name in ("body", "two words", ""):
        with pytest.raises(ws.SceneError, match="cannot name a matter"):
            decay(name).check()
    sim = ws.Simulator(ws.Scene(matters=[decay()]))
    with pytest.raises(ws.WarpsimError, match=r"decay\.level"):
        sim.rollout(1, start={"decay.levels": torch.ones(2)})
    with pytest.raises(ws.WarpsimError, match="shape"):
        sim.rollout(1, start={"decay.level": torch.ones(3)})


def test_pickled_simulator_and_trajectory_keep_the_matter() -> None:
    sim = ws.Simulator(ws.Scene(matters=[decay()]))
    sim.step()
    twin = copy.deepcopy(sim)
    assert torch.equal(twin.state["decay.level"], sim.state["decay.level"])


def test_unit_quaternions_move_on_their_spheres(rng: np.random.Generator) -> None:
    """`pull` and `units` against differences of `shift`, which keeps lengths."""
    manifold = UnitQuaternions()
    q = torch.as_tensor(rng.normal(size=(5, 3, 4)))
    q = (q / q.norm(dim=-1, keepdim=True)).flatten(1)
    move = 0.4 * torch.as_tensor(rng.normal(size=(5, 9)))
    moved = manifold.shift(q, move)
    torch.testing.assert_close(moved.unflatten(-1, (3, 4)).norm(dim=-1), torch.ones(5, 3, dtype=torch.float64))
    torch.testing.assert_close(manifold.difference(moved, q), move)
    h = 1e-6
    by_move = (manifold.shift(q, h * move) - manifold.shift(q, -h * move)) / (2 * h)
    covectors = torch.as_tensor(rng.normal(size=(5, 2, 12)))
    pulled = (manifold.pull(q, covectors) @ move[..., None])[..., 0]
    torch.testing.assert_close(pulled, (covectors @ by_move[..., None])[..., 0], rtol=1e-8, atol=1e-8)
    torch.testing.assert_close((manifold.units(q) @ by_move[..., None])[..., 0], move, rtol=1e-8, atol=1e-8)
    assert Field("spin", (2, 3), quat, manifold=manifold).tangent_size == 9
    assert Field("x", (2, 3), vec3).tangent_size == 9
