"""Torch's modes and transforms around a simulation: those that work, and our own errors for the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

from simulator_support import arm
from warpsim.core.errors import InputError
from warpsim.sim.simulator import Simulator

THROW = Path(__file__).resolve().parents[2] / "scenes" / "throw.usda"


@pytest.fixture
def sim() -> Simulator:
    return Simulator(arm(), worlds=2)


def controls(requires_grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(4, 2, 2, dtype=torch.float64, generator=generator).requires_grad_(requires_grad)


@pytest.mark.parametrize("first", ["step", "reset", "rollout", "policy", "parameters", "state"])
def test_inference_mode_leaves_nothing_behind(sim, first):
    u, twin = controls(requires_grad=True), Simulator(arm(), worlds=2)
    q = torch.ones(2, 2, dtype=torch.float64)

    def act(simulator: Simulator) -> None:
        if first == "step":
            simulator.step(u[0].detach())
        elif first == "reset":
            simulator.reset(q=q + 0.0)
        elif first == "rollout":
            simulator.rollout(controls=u.detach())
        elif first == "policy":
            simulator.rollout_policy(lambda state: 0.1 * state.qd, 3)
        elif first == "parameters":
            simulator.set_parameters({"shape.density": simulator.parameter("shape.density") * 2.0})
        else:
            assert torch.isfinite(simulator.state.q).all()

    with torch.inference_mode():
        act(sim)
    act(twin)
    for made in (sim, twin):
        made.step()
    made = [torch.autograd.grad(s.step(u[0]).q.sum() + s.rollout(controls=u).q.sum(), u)[0] for s in (sim, twin)]
    assert torch.equal(*made) and made[0].abs().max() > 0


def test_inference_tensors_can_be_inputs_of_a_graph(sim):
    with torch.inference_mode():
        u = controls() + 0.0
    q = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(sim.rollout(controls=u, q=q).q.sum(), q)
    (expected,) = torch.autograd.grad(sim.rollout(controls=controls(), q=q).q.sum(), q)
    assert torch.equal(found, expected)


def test_forward_mode_is_refused(sim):
    u = controls()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(u, torch.ones_like(u))
        for call in (
            lambda: sim.rollout(controls=dual),
            lambda: sim.step(dual[0]),
            lambda: sim.reset(q=dual[0]),
            lambda: sim.rollout(2, parameters={"shape.density": dual[0, 0]}),
            lambda: sim.rollout_policy(lambda state: dual[0], 2),
        ):
            with pytest.raises(InputError, match="carries a tangent.*what works"):
                call()
        assert torch.isfinite(sim.rollout(controls=u).q).all()


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp", "jacrev"])
def test_transforms_of_torch_func_are_refused(sim, transform):
    u = controls()

    def loss(given):
        return sim.rollout(controls=given).q.sum()

    calls = {
        "vmap": lambda: torch.func.vmap(loss)(torch.stack([u, u])),
        "grad": lambda: torch.func.grad(loss)(u),
        "jvp": lambda: torch.func.jvp(loss, (u,), (u,)),
        "jacrev": lambda: torch.func.jacrev(loss)(u),
    }
    with pytest.raises(InputError, match="torch.func and vmap cannot look into a simulation; what works"):
        calls[transform]()
    with pytest.raises(InputError, match="torch.func"):
        torch.func.grad(lambda w: sim.rollout_policy(lambda state: w * state.qd, 2).q.sum())(torch.ones(2))


def test_many_adjoints_at_once_are_refused(sim):
    u = controls(requires_grad=True)
    jacobian = torch.autograd.functional.jacobian
    one_by_one = jacobian(lambda given: sim.rollout(controls=given).q[-1, 0], u)
    assert one_by_one.shape == (2, 4, 2, 2)
    with pytest.raises(InputError, match="one adjoint at a time"):
        jacobian(lambda given: sim.rollout(controls=given).q[-1, 0], u, vectorize=True)
    made = sim.rollout(controls=u).q[-1, 0]
    with pytest.raises(InputError, match="one adjoint at a time"):
        torch.autograd.grad(made, u, torch.eye(2, dtype=torch.float64), is_grads_batched=True)


@pytest.mark.parametrize("kind", ["tensor", "numpy", "numbers"])
def test_complex_numbers_are_refused(sim, kind):
    u = controls() + 1j
    given = {"tensor": u, "numpy": u.numpy(), "numbers": u.tolist()}[kind]
    calls = (
        lambda: sim.rollout(controls={"actuator": given}, steps=4),
        lambda: sim.reset(q=given[0]),
        lambda: sim.rollout_policy(lambda state: given[0], 2),
    )
    for call in calls:
        with pytest.raises(InputError, match="complex"):
            call()
    thrown = Simulator(THROW)
    with pytest.raises(InputError, match="complex"):
        thrown.rollout(2, parameters={"/World/Ball/Shape.physics:mass": np.complex128(1 + 1j)})


@pytest.mark.long
def test_a_compiled_function_calls_the_simulator_as_it_is(sim):
    u = controls(requires_grad=True)

    def loss(given):
        return 2.0 * sim.rollout(controls=torch.tanh(given)).q.sum() + sim.step(given[0]).q.sum()

    sim.reset()
    expected = torch.autograd.grad(loss(u), u)[0]
    sim.reset()
    found = torch.autograd.grad(torch.compile(loss, backend="eager")(u), u)[0]
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=0.0)
