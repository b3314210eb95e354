"""The rollout as a node of torch's graph, against torch's own finite differences and ordinary use of autograd."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from simulator_support import arm, puck, tumbler
from warpsim.autograd.parameters import sum_worlds
from warpsim.core.errors import InputError, SimulationError, UnknownNameError
from warpsim.sim.simulator import Simulator
from warpsim.tape.journal import Resumable
from warpsim.tape.memory import Memory
from warpsim.tape.schedule import Revolve

ALL_OUTPUTS = (
    "body_position",
    "body_rotation",
    "body_velocity",
    "com",
    "linear_momentum",
    "angular_momentum",
    "potential_energy",
    "kinetic_energy",
)
STEPS = 7


def numbers(seed: int, *shape: int, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone().requires_grad_()


@pytest.fixture(scope="module")
def sim() -> Simulator:
    return Simulator(arm(), worlds=2)


def weighted(trajectory) -> torch.Tensor:
    """A loss that reads every number of a trajectory."""
    total = torch.zeros((), dtype=torch.float64)
    for i, tensor in enumerate(trajectory.values()):
        if tensor.is_floating_point():
            total = total + (numbers(100 + i, *tensor.shape) * tensor).sum()
    return total


def gradients(loss: torch.Tensor, *inputs: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, inputs))


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_gradcheck_of_every_kind_of_input(integrator):
    sim = Simulator(arm(integrator), worlds=2, outputs=ALL_OUTPUTS)
    density = sim.parameter("shape.density")[0]
    gain = sim.parameter("actuator.gain")

    def run(q, qd, activation, u, density, gain):
        trajectory = sim.rollout(
            controls=u,
            q=q,
            qd=qd,
            start={"activation": activation},
            parameters={"shape.density": density, "actuator.gain": gain},
            memory=Memory(segment=3),
        )
        return tuple(trajectory.values())

    inputs = (
        leaf(numbers(1, 2, sim.nq)),
        leaf(numbers(2, 2, sim.nv)),
        leaf(numbers(3, 2, 1)),
        leaf(numbers(4, STEPS, 2, sim.control_size, scale=0.3)),
        leaf(density),
        leaf(gain),
    )
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, eps=1e-6, atol=1e-5, rtol=1e-6)


def test_gradcheck_on_rotations():
    sim = Simulator(tumbler(), outputs=ALL_OUTPUTS, controls=("joint_force", "wrench"))

    def run(q, qd, u):
        return tuple(sim.rollout(controls=u, q=q, qd=qd).values())

    q = sim.state.q[0] + numbers(1, sim.nq, scale=0.1)
    inputs = (leaf(q), leaf(numbers(2, sim.nv)), leaf(numbers(3, 4, sim.control_size)))
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, eps=1e-6, atol=1e-5, rtol=1e-6)


def test_gradcheck_through_contact():
    sim = Simulator(puck(), outputs=("body_position", "contact_force"), controls=("wrench",))

    def run(q, qd, u, friction):
        made = sim.rollout(controls={"wrench": u}, q=q, qd=qd, parameters={"shape.friction": friction})
        return made.q, made.qd, made["contact_force"]

    q = sim.state.q[0] + torch.tensor([0, 0, 0, 0, 0.01, 0.02, 0], dtype=torch.float64)
    qd = torch.tensor([0.5, 0.2, 0.0, 0.1, 0.2, 0.3], dtype=torch.float64)
    u = numbers(3, 6, 1, 2, 6, scale=0.1) + torch.tensor([0, 0, -2.0, 0, 0, 0])  # pressed down: touches at every step
    inputs = (leaf(q), leaf(qd), leaf(u), leaf(sim.parameter("shape.friction")[0]))
    assert float(sim.rollout(controls={"wrench": u}, q=q, qd=qd)["contact_force"].abs().max()) > 0.1
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True, eps=1e-7, atol=1e-4, rtol=1e-4)


def test_a_shared_parameter_gets_the_sum_over_worlds_in_their_order(sim):
    u = numbers(0, STEPS, 2, 2)
    shared = leaf(sim.parameter("shape.density")[0])
    each = leaf(sim.parameter("shape.density"))
    (of_shared,) = gradients(weighted(sim.rollout(controls=u, parameters={"shape.density": shared})), shared)
    (of_each,) = gradients(weighted(sim.rollout(controls=u, parameters={"shape.density": each})), each)
    assert torch.equal(of_shared, of_each[0] + of_each[1])
    assert of_shared.abs().min() > 0


def test_sum_over_worlds_is_sequential():
    values = numbers(0, 1000, 3) * torch.logspace(-8, 8, 1000, dtype=torch.float64)[:, None]
    expected = values[0] * 0
    for row in values:
        expected = expected + row
    assert torch.equal(sum_worlds(values), expected)


def test_several_rollouts_open_before_backward(sim):
    u = [numbers(i, STEPS, 2, 2) for i in range(3)]
    densities = [leaf((1 + 0.2 * i) * sim.parameter("shape.density")[0]) for i in range(3)]
    alone = [
        gradients(weighted(sim.rollout(controls=v, parameters={"shape.density": d})), d)[0]
        for v, d in zip(u, densities, strict=True)
    ]
    open_ = [
        weighted(sim.rollout(controls=v, parameters={"shape.density": d})) for v, d in zip(u, densities, strict=True)
    ]
    together = [gradients(open_[i], densities[i])[0] for i in (1, 2, 0)]
    for got, i in zip(together, (1, 2, 0), strict=True):
        assert torch.equal(got, alone[i])


def test_retain_graph_repeats_the_gradient_bit_for_bit(sim):
    u = leaf(numbers(0, STEPS, 2, 2))
    loss = weighted(sim.rollout(controls=u, memory=Memory(segment=2, schedule=Revolve(2))))
    first = torch.autograd.grad(loss, u, retain_graph=True)[0]
    weighted(sim.rollout(controls=numbers(5, STEPS, 2, 2), memory=Memory(segment=2, schedule=Revolve(2))))
    second = torch.autograd.grad(loss, u)[0]
    assert torch.equal(first, second)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, u)


def test_several_losses_and_accumulation(sim):
    u = leaf(numbers(0, STEPS, 2, 2))
    trajectory = sim.rollout(controls=u)
    losses = [trajectory.q[-1].square().sum(), trajectory.body_position("fore")[2:].sum()]
    separate = sum(torch.autograd.grad(loss, u, retain_graph=True)[0] for loss in losses)
    for loss in losses:
        loss.backward(retain_graph=True)
    torch.testing.assert_close(u.grad, separate, rtol=0, atol=0)


def test_a_reused_adjoint_is_neither_kept_nor_written(sim):
    u = leaf(numbers(0, STEPS, 2, 2))
    trajectory = sim.rollout(controls=u)
    adjoint = numbers(1, *trajectory.q.shape)
    before = adjoint.clone()
    first = torch.autograd.grad(trajectory.q, u, adjoint, retain_graph=True)[0]
    kept = first.clone()
    second = torch.autograd.grad(trajectory.q, u, 2 * adjoint, retain_graph=True)[0]
    assert torch.equal(adjoint, before) and torch.equal(first, kept)
    torch.testing.assert_close(second, 2 * first, rtol=1e-14, atol=0)
    assert first.data_ptr() != adjoint.data_ptr()


def test_one_tensor_used_twice(sim):
    q = leaf(numbers(0, 2, 2))
    u = numbers(1, STEPS, 2, 2)
    (twice,) = gradients(weighted(sim.rollout(controls=u, q=q, qd=q)), q)
    a, b = leaf(q.detach()), leaf(q.detach())
    apart = gradients(weighted(sim.rollout(controls=u, q=a, qd=b)), a, b)
    assert torch.equal(twice, apart[0] + apart[1])


def test_no_grad_records_nothing(sim):
    u = leaf(numbers(0, STEPS, 2, 2))
    with torch.no_grad():
        quiet = sim.rollout(controls=u)
    assert not quiet.q.requires_grad
    assert torch.equal(quiet.q, sim.rollout(controls=u).q)


def test_float32_and_strided_inputs_give_the_same_gradient_in_their_own_type(sim):
    u = numbers(0, STEPS, 2, 2).float().double()
    reference = leaf(u)
    (expected,) = gradients(weighted(sim.rollout(controls=reference)), reference)
    single = leaf(u.float())
    (got,) = gradients(weighted(sim.rollout(controls=single)), single)
    assert got.dtype == torch.float32
    assert torch.equal(got, expected.float())
    strided = leaf(u.permute(2, 0, 1))
    (got,) = gradients(weighted(sim.rollout(controls=strided.permute(1, 2, 0))), strided)
    assert torch.equal(got, expected.permute(2, 0, 1))


def test_controls_shared_by_worlds(sim):
    u = leaf(numbers(0, STEPS, 2))
    (got,) = gradients(weighted(sim.rollout(controls=u)), u)
    full = leaf(u.detach()[:, None].expand(-1, 2, -1))
    (expected,) = gradients(weighted(sim.rollout(controls=full)), full)
    torch.testing.assert_close(got, expected.sum(1), rtol=1e-14, atol=1e-14)


def test_controls_by_name_are_the_slices_of_one_tensor():
    sim = Simulator(arm(), controls=("wrench", "actuator"))
    u = numbers(0, STEPS, 1, sim.control_size)
    whole = sim.rollout(controls=u)
    wrench = u[..., sim.control_slice("wrench")].reshape(STEPS, 1, len(sim.body_names), 6)
    named = sim.rollout(controls={"actuator": u[..., sim.control_slice("actuator")], "wrench": wrench})
    assert torch.equal(whole.q, named.q)


def test_memory_is_shared_not_copied(sim):
    u = numbers(0, STEPS, 2, 2)
    trajectory = sim.rollout(controls=u)
    for name in trajectory:
        assert trajectory.warp(name).ptr == trajectory[name].data_ptr()
        assert trajectory.numpy(name).ctypes.data == trajectory[name].data_ptr()
        assert torch.from_dlpack(trajectory[name]).data_ptr() == trajectory[name].data_ptr()
    split = sim._controls.split(u, STEPS)["actuator"]
    assert split.data_ptr() == u.data_ptr()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's process statistics")
def test_a_long_rollout_costs_its_trajectory_once():
    sim = Simulator(arm(), worlds=64, outputs=())
    u = leaf(numbers(0, 3000, 64, 2))

    def run():
        trajectory = sim.rollout(controls=u)
        trajectory.q[-1].sum().backward()
        return trajectory

    run()  # slots, graphs and gradients are made once
    gc.collect()
    before = resident_bytes()
    trajectory = run()
    size = sum(tensor.numel() * tensor.element_size() for tensor in trajectory.values())
    grown = resident_bytes() - before
    checkpoints = size / 10
    assert grown < 1.15 * size + checkpoints, f"{grown / 1e6:.1f} MB for a trajectory of {size / 1e6:.1f} MB"


def test_rows_kept_every_few_steps_have_the_gradient_of_those_rows(sim):
    u = leaf(numbers(0, STEPS, 2, 2))
    sparse = sim.rollout(controls=u, keep_every=3)
    full = sim.rollout(controls=u)
    assert np.allclose(sparse.times, full.times[::3])
    for name in sparse:
        assert torch.equal(sparse[name], full[name][::3])
    loss = weighted(sparse)
    expected = weighted({name: full[name][::3] for name in full})
    assert torch.equal(gradients(loss, u)[0], gradients(expected, u)[0])


def test_a_budget_changes_memory_not_numbers(sim):
    u = leaf(numbers(0, 40, 2, 2))
    (free,) = gradients(weighted(sim.rollout(controls=u)), u)
    (tight,) = gradients(weighted(sim.rollout(controls=u, memory=Memory(segment=4, schedule=Revolve(3)))), u)
    assert torch.equal(free, tight)


def test_checkpoints_are_given_back_when_the_graph_goes(sim):
    u = leaf(numbers(0, STEPS, 2, 2))
    trajectory = sim.rollout(controls=u)
    run = trajectory.q.grad_fn.made.kept.run
    trajectory.q.sum().backward()
    assert not run.released
    del trajectory
    gc.collect()
    assert run.released


def test_double_backward_is_refused(sim):
    u = leaf(numbers(0, STEPS, 2, 2))

    def loss(controls: torch.Tensor) -> torch.Tensor:
        return sim.rollout(controls=controls).q.square().sum() + controls.square().sum()

    with pytest.raises(InputError, match="differentiated once"):
        torch.autograd.grad(loss(u), u, create_graph=True)
    with pytest.raises(InputError, match="differentiated once"):
        loss(u).backward(create_graph=True)
    with pytest.raises(InputError, match="differentiated once"):  # torch's own decorator lets this one be zero
        torch.autograd.functional.hessian(loss, u.detach())


def test_controls_changed_in_place_are_noticed(sim):
    u = leaf(numbers(0, STEPS, 2, 2))
    loss = sim.rollout(controls=u).q.sum()
    with torch.no_grad():
        u += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_adam_fits_parameters_and_controls(sim):
    true = 1.5 * sim.parameter("shape.density")[0]
    u = numbers(0, 20, 2, 2, scale=0.5)
    data = sim.rollout(controls=u, parameters={"shape.density": true}).q
    scale = leaf(torch.ones(2, dtype=torch.float64))
    optimizer = torch.optim.Adam([scale], lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        density = scale * sim.parameter("shape.density")[0]
        loss = (sim.rollout(controls=u, parameters={"shape.density": density}).q - data).square().sum()
        loss.backward()
        optimizer.step()
    assert torch.allclose(scale, torch.full_like(scale, 1.5), rtol=2e-2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(controls=torch.zeros(5, 3, 2)), r"controls has shape \(5, 3, 2\); needed: \(5, 2, 2\)"),
        (dict(controls=torch.zeros(5, 2, 2, dtype=torch.int32)), "controls has dtype torch.int32"),
        (dict(controls={"actuators": torch.zeros(5, 2, 2)}), "did you mean 'actuator'"),
        (dict(controls={"wrench": torch.zeros(5, 2, 2)}), "no selected control 'wrench'"),
        (dict(controls=torch.zeros(5, 2, 2, device="meta")), "controls is on meta, the simulator on cpu"),
        (dict(steps=5, q=torch.zeros(3)), r"q has shape \(3,\); needed: \(2, 2\)"),
        (dict(steps=5, parameters={"body.mas": 1.0}), "did you mean 'body.mass'"),
        (
            dict(steps=5, parameters={"shape.density": torch.zeros(7)}),
            r"shape \(7,\); needed: \(2,\) for all worlds alike",
        ),
        (dict(steps=5, outputs=("body_positon",)), "did you mean 'body_position'"),
        (dict(steps=5, outputs="com"), "give a list of names"),
        (dict(steps=5, clip=1.0), "clip=1 acts between segments; say with memory=Memory"),
        (dict(), "give steps= or controls="),
        (dict(steps=0), "at least 1"),
        (dict(steps=2.5), "steps=2.5; give a whole number"),
        (dict(steps=torch.zeros(5, 2, 2)), "write controls="),
        (dict(steps=5, keep_every=0), "keep_every=0; give a whole number, at least 1"),
        (dict(steps=5, memory="much"), "memory='much'; write bytes"),
        (dict(steps=5, memory=Memory(storage=Resumable("."))), "Resumable keeps the results"),
        (dict(steps=5, start=3.0), r"start=3.0; give a state such as sim.state"),
        (dict(steps=5, memory=[1]), r"memory=\[1\]; write a budget"),
        (dict(steps=5, clip=0.0, memory=Memory(segment=2)), "clip=0.0; give a finite number above 0"),
    ],
)
def test_misuse_says_what_and_what_to_do(sim, arguments, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        sim.rollout(**arguments)


def test_parameters_that_are_not_numbers_are_refused(sim):
    bad = sim.parameter("shape.density")[0] * np.nan
    with pytest.raises(InputError, match="was given nan"):
        sim.rollout(steps=2, parameters={"shape.density": bad})
    assert torch.isfinite(sim.rollout(steps=2).q).all()


def test_rows_further_apart_than_the_rollout_is_long(sim):
    only = sim.rollout(5, keep_every=6)
    assert only.q.shape[0] == only["body_position"].shape[0] == 1


def test_controls_as_nested_lists(sim):
    listed = sim.rollout(controls=[[0.1, 0.2]] * 3).q
    assert torch.equal(listed, sim.rollout(controls=torch.tensor([[0.1, 0.2]] * 3, dtype=torch.float64)).q)


def test_rollouts_of_ever_other_lengths_share_one_budget(sim):
    """Tapes are kept for reuse only as long as all of them fit the budget that was given."""
    sizes = {n: sim.plan(n, memory="4MB").bytes for n in range(20, 60)}
    assert sum(sizes.values()) > 16_000_000
    for n in sizes:
        sim.rollout(n, memory="4MB", controls=numbers(n, n, 2, 2))
    kept = [tape.plan.bytes for tape in sim._engine._tapes.values()]
    assert 1 <= len(kept) < 8 and sum(kept) <= 4_000_000


@pytest.mark.parametrize("options", [{}, {"memory": Memory(segment=4)}, {"keep_every": 3}, {"threads": 2}])
def test_a_failed_rollout_carries_what_it_had_reached(sim, options):
    controls = torch.zeros(40, 2, sim.control_size, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        controls[17, 1] = torch.inf
    with pytest.raises(SimulationError, match="step 18, world 1") as caught:
        sim.rollout(controls=controls, **options)
    reached = caught.value.trajectory
    expected = sim.rollout(controls=controls[:17].detach(), **options)
    assert torch.equal(reached.q, expected.q) and torch.equal(reached.qd, expected.qd)
    assert torch.equal(reached["body_position"], expected["body_position"])
    np.testing.assert_array_equal(reached.times, expected.times)


def test_threads_share_worlds_and_give_the_same_bits():
    sim = Simulator(arm(), worlds=4, outputs=ALL_OUTPUTS)
    u = leaf(numbers(0, STEPS, 4, 2))
    one, two = (sim.rollout(controls=u, threads=threads) for threads in (1, 2))
    for name in one:
        assert torch.equal(one[name], two[name]), name
    assert torch.equal(gradients(weighted(one), u)[0], gradients(weighted(two), u)[0])
