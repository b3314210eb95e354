"""One world on several cores: a net of springs whose launches are divided among threads, against one thread.

    python -m tools.bench.divided                  # 100,000 springs, best of ten alternating runs

Runs alternate, so that what else the machine does hits both sides; wall-clock time, since that is what threads are for.
Final states and gradients must have the same bits.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tools.bench.net import DividedNet
from warpsim.tape import CheckpointedTape


def gradient(net: DividedNet, tape: CheckpointedTape) -> tuple[float, float, bytes]:
    """Seconds forward and backward, and the bits of state and gradient."""
    net.parameters["stiffness"].grad.zero_()
    begin = time.perf_counter()
    run = tape.forward(net.start())
    middle = time.perf_counter()
    state = run.state()
    tape.backward(run, state_seeds={"x": {-1: np.ones((1, net.nodes, 3))}})
    end = time.perf_counter()
    return (
        middle - begin,
        end - middle,
        np.array(state["x"]).tobytes() + net.parameters["stiffness"].grad.numpy().tobytes(),
    )


def main() -> None:
    """Measures, and prints a line for each direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=159, help="nodes along an edge (default: 159, 100,172 springs)")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    nets = {threads: DividedNet(options.side, smallest=256) for threads in (1, options.threads)}
    tapes = {t: CheckpointedTape(net, steps=options.steps, threads=t) for t, net in nets.items()}
    times: dict[int, list[tuple[float, float]]] = {t: [] for t in tapes}
    bits = set()
    for repeat in range(options.repeats + 1):  # the first one captures
        for t, tape in tapes.items():
            forward, backward, found = gradient(nets[t], tape)
            bits.add(found)
            if repeat:
                times[t].append((forward, backward))
    assert len(bits) == 1, "the bits depend on the number of threads"
    best = {t: np.min(made, axis=0) for t, made in times.items()}
    for k, what in enumerate(("forward", "backward")):
        one, many = (1e6 * best[t][k] / options.steps for t in (1, options.threads))
        print(f"{what}: {one:.0f} µs per step on one thread, {many:.0f} on {options.threads}: {one / many:.2f}×")
    print(f"{nets[1].springs} springs, {options.steps} steps, best of {options.repeats}; same bits")


if __name__ == "__main__":
    main()
