"""Simulators in several Python threads: the bits of one thread, whoever comes first."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from simulator_support import arm
from thread_probe import wrong_calls
from warpsim.core.kernel_lock import KERNELS, Turn
from warpsim.sim.simulator import Simulator

PROBE = Path(__file__).parents[1] / "support" / "thread_probe.py"


def run_probe(*arguments: str) -> None:
    """In a process of its own, where nothing is loaded or captured yet, and which may crash."""
    done = subprocess.run([sys.executable, PROBE, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["0 wrong"]), done.stderr[-2000:]


@pytest.mark.parametrize("sharing", ["separate", "shared"])
def test_threads_that_start_cold(sharing):
    run_probe(sharing, "cold", "4", "5")


@pytest.mark.parametrize("sharing", ["separate", "shared"])
def test_threads_that_start_warm(sharing):
    assert wrong_calls(sharing, "warm", 4, 6) == 0


@pytest.mark.long
@pytest.mark.parametrize("state", ["cold", "warm"])
@pytest.mark.parametrize("sharing", ["separate", "shared"])
def test_many_calls_in_threads(sharing, state):
    run_probe(sharing, state, "4", "200")


def in_threads(count: int, work) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_steps_of_one_simulator_are_taken_one_at_a_time():
    sim, alone = Simulator(arm()), Simulator(arm())
    in_threads(4, lambda: [sim.step() for _ in range(10)])
    for _ in range(40):
        alone.step()
    assert sim.time == alone.time
    assert torch.equal(sim.state.q, alone.state.q) and torch.equal(sim.state.qd, alone.state.qd)


def test_a_policy_may_wait_for_another_thread_that_uses_the_same_simulator():
    sim = Simulator(arm())

    def policy(state):
        other = threading.Thread(target=lambda: sim.rollout(3))
        other.start()
        other.join(60.0)
        assert not other.is_alive()
        return 0.1 * state.qd

    assert torch.isfinite(sim.rollout_policy(policy, 3).q).all()


def test_the_backward_pass_may_run_in_another_thread():
    sim = Simulator(arm(), worlds=2)
    u = torch.zeros(4, 2, 2, dtype=torch.float64, requires_grad=True)
    losses = [(k + 1) * sim.rollout(controls=u).q.sum() for k in range(4)]
    expected = torch.autograd.grad(sim.rollout(controls=u).q.sum(), u)[0]
    found = {}
    in_threads(1, lambda: found.update({k: torch.autograd.grad(loss, u)[0] for k, loss in enumerate(losses)}))
    for k in range(4):
        torch.testing.assert_close(found[k], (k + 1) * expected, rtol=1e-14, atol=0.0)


def test_whoever_waits_for_a_turn_lets_others_use_warp():
    turn, has_turn, waits = Turn(), threading.Event(), threading.Event()
    order = []

    def holder():
        with turn:
            has_turn.set()
            KERNELS.without(waits.wait)  # as a replay does; then it wants the lock again
            order.append("holder")

    def waiter():
        has_turn.wait()
        with KERNELS:
            waits.set()
            with turn:
                order.append("waiter")

    threads = [threading.Thread(target=work, daemon=True) for work in (holder, waiter)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert order == ["holder", "waiter"]
