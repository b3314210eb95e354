"""Room for contacts: it grows where they need it, and changes no bit of a motion or a gradient."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from contact_support import object_scene, solid
from rigid_support import scene_of
from warpsim.collision.contacts import PairTable
from warpsim.core.errors import InputError, SimulationError
from warpsim.engine import contact_room
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.step.program import RigidProgram
from warpsim.rigid.work.constraint_work import contact_bytes
from warpsim.scene import Options, Scene
from warpsim.sim.simulator import Simulator
from warpsim.tape import AllStarts, Memory, Revolve
from warpsim.tape import arena as arenas
from warpsim.tape.sweep import Sweep

ROOM = 400
STEPS = 60


def boxes(*places: tuple[float, float, float], half: float = 0.1, **options) -> Scene:
    shapes = [solid("box", (half, half, half), place) for place in places]
    return object_scene(*shapes, options=Options(timestep=0.004, **options))


def stack(gap: float = 0.0, **options) -> Scene:
    """Five boxes above each other, each turned a little; with a gap they land one after the other. 36 contacts."""
    places = [((0.0, 0.0, 0.1 + gap + (0.2 + gap) * k), (0.0, 0.0, 0.05 * k)) for k in range(5)]
    shapes = [solid("box", (0.1, 0.1, 0.1), place, turn if k else ()) for k, (place, turn) in enumerate(places)]
    return object_scene(*shapes, options=Options(timestep=0.004, **options))


def wall() -> Scene:
    """Three courses of bricks in a running bond."""
    return boxes(*((0.201 * i + 0.1 * (k % 2), 0.0, 0.1 + 0.2 * k) for k in range(3) for i in range(4 - k % 2)))


def block() -> Scene:
    return boxes(*((0.2 * i, 0.2 * j, 0.1 + 0.2 * k) for i in range(3) for j in range(3) for k in range(3)))


def differentiated(sim: Simulator, steps: int = STEPS, **options) -> tuple[torch.Tensor, ...]:
    """Trajectory, and gradients of a loss over all of it by forces, initial velocities and masses."""
    generator = torch.Generator().manual_seed(0)
    force = 0.1 * torch.randn(steps, sim.worlds, sim.nv, dtype=torch.float64, generator=generator)
    qd = torch.zeros(sim.worlds, sim.nv, dtype=torch.float64)
    mass = sim.parameter("shape.density")[0]
    inputs = [tensor.requires_grad_() for tensor in (force, qd, mass)]
    made = sim.rollout(controls=force, qd=qd, parameters={"shape.density": mass}, **options)
    weight = torch.randn(made.q.shape, dtype=torch.float64, generator=generator)
    gradients = torch.autograd.grad((made.q * weight).sum(), inputs)
    return made.q.detach(), *(gradient.clone() for gradient in gradients)


def equal(first: tuple[torch.Tensor, ...], second: tuple[torch.Tensor, ...]) -> bool:
    assert all(t.isfinite().all() and t.abs().max() > 0 for t in first)
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("make", [stack, wall, block])
def test_piles_run_by_default_with_the_bits_of_room_from_the_start(make):
    sim, roomy = Simulator(make()), Simulator(make(), max_contacts=1000)
    few = sim.model.max_contacts
    found, expected = differentiated(sim, 5), differentiated(roomy, 5)
    assert roomy.model.max_contacts == 1000
    assert few < sim.model.max_contacts < 1000
    assert equal(found, expected)


def test_a_stack_moves_as_in_mujoco_and_carries_its_weight():
    """Five boxes, each turned a little on the one below: 36 contacts in both."""
    bodies = "".join(
        f'<body pos="{0.003 * k} {-0.002 * k} {0.0999 + 0.1998 * k}" euler="0 0 {3 * k}"><freejoint/>'
        f'<geom type="box" size=".1 .1 .1"/></body>'
        for k in range(5)
    )
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option cone="elliptic" tolerance="1e-14" iterations="200"/><worldbody>'
        f'<geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    sim = Simulator(scene_of(model), outputs=("contact_count", "contact_force"))
    made = sim.rollout(steps=600)
    for k in range(1, 31):
        mujoco.mj_step(model, data)
        assert data.ncon == made["contact_count"][k, 0] == 36
        np.testing.assert_allclose(made.numpy("q")[k, 0], data.qpos, rtol=0, atol=1e-12)
    weight = 8.0 * 9.81
    vertical = made.numpy("contact_force")[-1, 0, :, 2]
    np.testing.assert_allclose(vertical, [-5 * weight, *[weight] * 5], rtol=1e-6)


def whole() -> int:
    """A budget that keeps the whole rollout of a falling stack, but not with the places that it comes to need."""
    return int(1.05 * Simulator(stack(0.02)).plan(STEPS).bytes)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"memory": Memory(segment=7)},
        {"memory": Memory(segment=4, schedule=Revolve(3))},
        {"memory": Memory(segment=6, schedule=AllStarts())},
        {"memory": "all steps, with the first places"},
        {"memory": Memory(segment=7), "keep_every": 5},
    ],
    ids=str,
)
def test_a_rollout_goes_on_from_its_last_good_state(options, monkeypatch):
    """Boxes that land late: the steps before are not taken again, and a plan that no longer fits is another."""
    entered = []
    forward = Sweep.forward
    replanned = isinstance(options.get("memory"), str)
    if replanned:
        options = {"memory": whole()}

    def watched(sweep, part, end, progress):
        entered.append((part.step, sweep.plan))
        return forward(sweep, part, end, progress)

    expected = differentiated(Simulator(stack(0.02), max_contacts=ROOM), **options)
    monkeypatch.setattr(Sweep, "forward", watched)
    sim = Simulator(stack(0.02))
    found = differentiated(sim, **options)
    assert sim.model.max_contacts > 32
    (start, before), (taken_up, after) = entered
    assert start == 0 and taken_up > 20
    assert (before.cuts == after.cuts) == (not replanned)
    assert equal(found, expected)


def test_several_backward_passes_of_a_run_that_was_taken_up():
    """With all starts kept, of which those before the growth are missing when the plan has changed."""
    sim = Simulator(stack(0.02))
    force = torch.zeros(STEPS, 1, sim.nv, dtype=torch.float64, requires_grad=True)
    loss = sim.rollout(controls=force, memory=whole()).q.square().sum()
    assert sim.model.max_contacts > 32
    first, second = (torch.autograd.grad(loss, force, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second) and first.abs().max() > 0


def test_a_rollout_from_before_is_differentiated_after_another_grew():
    def both(sim: Simulator, other: bool) -> list[torch.Tensor]:
        density = sim.parameter("shape.density")[0].requires_grad_()
        force = torch.zeros(22, 1, sim.nv, dtype=torch.float64, requires_grad=True)
        apart = sim.rollout(controls=force, parameters={"shape.density": density}, memory=Memory(segment=3))
        stepped = sim.step(force[0]).q
        if other:
            assert sim.model.max_contacts == 32
            sim.rollout(steps=STEPS)
            assert sim.model.max_contacts > 32
        loss = apart.q.square().sum() + stepped.square().sum()
        return [apart.q.detach(), *torch.autograd.grad(loss, [force, density])]

    found, expected = (both(Simulator(stack(0.02)), other) for other in (True, False))
    assert equal(tuple(found), tuple(expected))


@pytest.fixture
def four_places(monkeypatch):
    """Scenes start with room for four contacts."""
    monkeypatch.setattr(PairTable, "max_contacts", property(lambda table: min(4, table.candidates)))


def trio(gap: float = 0.0, **options) -> Scene:
    """Three boxes side by side that land together."""
    return boxes(*((0.5 * k, 0.0, 0.1 + gap) for k in range(3)), **options)


@pytest.mark.usefixtures("four_places")
class TestEveryWayToSimulate:
    @pytest.mark.parametrize("options", [{"integrator": "rk4"}, {"integrator": "implicitfast"}, {"cone": "pyramidal"}])
    def test_integrators_and_cones(self, options):
        sim = Simulator(trio(0.01, **options))
        found = differentiated(sim, 20)
        assert sim.model.max_contacts >= 12
        assert equal(found, differentiated(Simulator(trio(0.01, **options), max_contacts=ROOM), 20))

    def test_impacts(self):
        """All land within one step: contacts that are dropped where the touch is looked for would not be struck."""
        scene = trio(0.01, impacts=True)
        for shape in scene.shapes:
            shape.restitution = 0.5
        sim = Simulator(scene)
        found = differentiated(sim, 20)
        assert sim.model.max_contacts >= 12
        assert equal(found, differentiated(Simulator(scene, max_contacts=ROOM), 20))

    def test_impacts_whose_first_touch_had_no_place(self, monkeypatch):
        """A box lands on four corners within a step; the first to touch is not among the two that have places."""
        monkeypatch.setattr(PairTable, "max_contacts", property(lambda table: 2))
        box = solid("box", (0.1, 0.1, 0.1), (0.0, 0.0, 0.113), (-0.08, 0.03, 0.0))
        scene = object_scene(box, options=Options(timestep=0.004, impacts=True), restitution=0.5)
        qd = torch.tensor([[0.0, 0.0, -6.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
        sims = Simulator(scene), Simulator(scene, max_contacts=ROOM)
        found, expected = (sim.rollout(steps=6, qd=qd).q for sim in sims)
        assert sims[0].model.max_contacts > 2
        assert torch.equal(found, expected)

    @pytest.mark.parametrize("threads", [1, 2])
    def test_one_world_grows_for_all(self, threads):
        def run(sim: Simulator) -> tuple[torch.Tensor, ...]:
            q = sim.state.q.clone()
            q[:, 2::7] += torch.tensor([0.0, 0.02, 1.0, 0.01], dtype=q.dtype)[:, None]
            return differentiated(sim, 20, q=q, threads=threads, memory=Memory(segment=6))

        sim = Simulator(trio(), worlds=4)
        assert equal(run(sim), run(Simulator(trio(), worlds=4, max_contacts=ROOM)))
        assert sim.model.max_contacts >= 12

    def test_steps_and_policies(self):
        def run(sim: Simulator) -> tuple[torch.Tensor, ...]:
            gain = torch.full((1,), -3.0, dtype=torch.float64, requires_grad=True)
            loop = sim.rollout_policy(lambda state: gain * state.qd, 20, hold=3, memory=Memory(segment=6))
            network = sim.network_policy(hidden=(4,))
            inside = sim.rollout_policy(network, 20, memory=Memory(segment=6))
            seen = []
            for _ in range(20):
                seen.append(sim.step(gain * sim.state.qd).q)
            steps = torch.stack(seen)
            loss = loop.q.square().sum() + inside.q.square().sum() + steps.square().sum()
            gradients = torch.autograd.grad(loss, [gain, *network.parameters()])
            return loop.q.detach(), inside.q.detach(), steps.detach(), gradients[0], gradients[1]

        assert equal(run(Simulator(trio(0.01))), run(Simulator(trio(0.01), max_contacts=ROOM)))

    def test_jacobians_and_gradcheck(self):
        sims = Simulator(trio(0.001)), Simulator(trio(0.001), max_contacts=ROOM)
        found, expected = (sim.jacobians(sim.rollout(steps=15)) for sim in sims)
        assert equal(tuple(found), tuple(expected))
        report = sims[0].gradcheck(12, parameters=("body.position",), window=4)
        assert report.ok, report

    @pytest.mark.parametrize("how", ["rollout", "step"])
    def test_softened_contacts_of_the_backward_pass(self, how):
        """Nothing touches; only the adjoint sees contacts, and lacks places for them."""

        def gradient(sim: Simulator) -> torch.Tensor:
            qd = torch.full((1, sim.nv), -0.1, dtype=torch.float64, requires_grad=True)
            if how == "rollout":
                last = sim.rollout(steps=3, qd=qd, memory=Memory(segment=2)).q[-1]
            else:
                sim.reset(qd=qd)
                last = sim.step().q
            return torch.autograd.grad(last.square().sum(), qd)[0]

        options = {"contact_softening": 0.05, "softening_pass": "backward"}
        sim = Simulator(trio(0.02, **options))
        found = gradient(sim)
        assert sim.model.max_contacts >= 12
        assert torch.equal(found, gradient(Simulator(trio(0.02, **options), max_contacts=ROOM)))
        assert not torch.equal(found, gradient(Simulator(trio(0.02), max_contacts=ROOM)))

    def test_memory_bounds_the_room(self, monkeypatch):
        monkeypatch.setattr(contact_room, "free_bytes", lambda device: 10_000)
        sim = Simulator(trio(0.01), worlds=2)
        with pytest.raises(
            SimulationError, match=r"step \d+, world 0: 12 contacts.*2 world.*kB.*10 kB.*free"
        ) as caught:
            sim.rollout(steps=20)
        assert 5 < len(caught.value.trajectory.times) < 20
        assert caught.value.trajectory.q.isfinite().all()
        assert sim.model.max_contacts == 4

    def test_room_that_just_fits_is_taken(self, monkeypatch):
        """What counts is what is added to the places there are."""
        sim = Simulator(trio(0.01))
        few, enough = (contact_room._bytes(sim.model.with_room(n)) for n in (sim.model.max_contacts, 12))
        monkeypatch.setattr(contact_room, "free_bytes", lambda device: enough - few)
        sim.rollout(steps=20)
        assert sim.model.max_contacts == 12

    def test_a_budget_bounds_the_room(self):
        """It holds a step with the places there are, and not one with those that are needed."""
        least = Simulator(trio()).plan(20, memory=Memory(segment=1, schedule=Revolve(1))).bytes
        sim = Simulator(trio(0.01))
        sim.rollout(steps=2, memory=2 * least)
        with pytest.raises(InputError, match="memory="):
            sim.rollout(steps=20, memory=Memory(budget=least, segment=1, schedule=Revolve(1)))


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_the_bytes_of_a_place_are_those_it_takes(cone):
    """In scratch and in one evaluation's intermediates and adjoints; blocks are rounded up."""

    def taken(places: int) -> tuple[int, int]:
        model = compile_model(stack(cone=cone), worlds=3).with_room(places)
        program = RigidProgram(model, controls=())
        size = arenas.measure(program)
        structs = (program.scratch.constraint.rows, program.scratch.constraint.vectors)
        arrays = [getattr(struct, name) for struct in structs for name in struct._cls.vars]
        return size.values + size.adjoints + sum(array.capacity for array in arrays), contact_bytes(model)

    (few, told_few), (many, told_many) = taken(100), taken(1100)
    assert told_many - told_few == pytest.approx(many - few, rel=0.01)


@pytest.mark.parametrize("how", ["rollout", "step"])
def test_a_limit_that_is_set_is_kept(how):
    """The error says how many there were, where, and who set the limit."""
    sim = Simulator(stack(), worlds=2, max_contacts=33)
    with pytest.raises(
        SimulationError, match=r"step \d.*world [01]: 3\d contacts but only 33 places.*--max-contacts"
    ) as e:
        if how == "rollout":
            sim.rollout(steps=50)
        else:
            for _ in range(50):
                sim.step()
    assert sim.model.max_contacts == 33
    if how == "rollout":
        assert e.value.trajectory.q.isfinite().all()


@pytest.mark.parametrize("wrong", [0, -3, 2.5, True])
def test_limits_that_make_no_sense(wrong):
    with pytest.raises(InputError, match="max_contacts"):
        Simulator(stack(), max_contacts=wrong)


def test_other_simulators_of_the_same_source_keep_the_limit():
    assert Simulator(stack(), max_contacts=50).with_worlds(3).model.max_contacts == 50


@pytest.mark.parametrize(
    "places",
    [
        [(0.0, 0.0), (0.0, 0.0), (0.0, 0.0)],
        [(0.37, -1.13), (0.37, -1.13), (0.37, -1.13)],
        [(0.0, 0.0), (0.03, 0.0), (0.06, 0.0)],
        [(0.0, 0.0), (0.0, 0.02), (0.0, 0.04)],
    ],
    ids=["at the origin", "elsewhere", "shifted along x", "shifted along y"],
)
def test_aligned_boxes_touch_by_four_corners_each(places):
    """Corners that coincide, up to rounding, are one contact: a neat stack neither tilts nor creeps, as in MuJoCo."""
    bodies = "".join(
        f'<body pos="{x} {y} {0.0999 + 0.1998 * k}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for k, (x, y) in enumerate(places)
    )
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><option cone="elliptic" tolerance="1e-14" iterations="200"/><worldbody>'
        f'<geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    made = Simulator(scene_of(model), outputs=("contact_count",)).rollout(steps=100)
    for k in range(1, 101):
        mujoco.mj_step(model, data)
        assert data.ncon == made["contact_count"][k, 0] == 12
    np.testing.assert_allclose(made.q[-1, 0].numpy(), data.qpos, rtol=0, atol=1e-13)
