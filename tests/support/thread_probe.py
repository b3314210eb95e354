"""Several Python threads simulate at once; prints how many of their results are not those of one thread.

python thread_probe.py shared|separate cold|warm THREADS CALLS

Run as a process of its own: Warp loads kernels and captures for the first time in all threads at once if it is "cold".
"""

from __future__ import annotations

import sys
import threading

import torch

from simulator_support import arm
from warpsim.sim.simulator import Simulator

STEPS, WORLDS = 4, 2


def make() -> Simulator:
    return Simulator(arm(), worlds=WORLDS)


def call(sim: Simulator, number: int) -> list[torch.Tensor]:
    """A rollout with inputs, parameters and a length that depend on the number, and its gradients."""
    generator = torch.Generator().manual_seed(number)
    u = torch.randn(STEPS + number % 3, WORLDS, 2, dtype=torch.float64, generator=generator).requires_grad_()
    q = torch.randn(WORLDS, 2, dtype=torch.float64, generator=generator).requires_grad_()
    damping = torch.rand(sim.parameter("joint.damping")[0].shape, dtype=torch.float64, generator=generator)
    leaves = [u, q]
    if number % 2:
        leaves.append(damping.requires_grad_())
    threads = 2 if number % 5 == 0 else 1
    trajectory = sim.rollout(controls=u, q=q, parameters={"joint.damping": damping}, threads=threads)
    loss = (trajectory.q**2).sum() + trajectory.body_position("fore").sum()
    return [trajectory.q.detach(), trajectory["body_position"].detach(), *torch.autograd.grad(loss, leaves)]


def wrong_calls(sharing: str, state: str, threads: int, calls: int) -> int:
    """How many of `calls` calls in each of some threads differ, in any bit, from those of one thread."""
    shared = make() if sharing == "shared" else None
    sims = [shared or make() for _ in range(threads)] if state == "warm" else []
    for sim in sims:
        for number in range(6):
            call(sim, number)
    made: list[list[list[torch.Tensor]]] = [[] for _ in range(threads)]
    gate = threading.Barrier(threads)

    def work(thread: int) -> None:
        gate.wait()
        sim = sims[thread] if sims else shared or make()
        for number in range(calls):
            made[thread].append(call(sim, 1000 * thread + number))

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    alone = make()
    wrong = 0
    for thread in range(threads):
        for number in range(calls):
            found = made[thread][number] if number < len(made[thread]) else []  # a thread may have died
            expected = call(alone, 1000 * thread + number)
            wrong += not (len(found) == len(expected) and all(map(torch.equal, found, expected)))
    return wrong


if __name__ == "__main__":
    print(wrong_calls(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])), "wrong")
