"""What share of a closed loop's time is spent in kernels: 64 quadrupeds on the ground under a small torch network.

    python -m tools.bench.closed_loop [--steps 100] [--hold 10] [--worlds 64] [--scene scenes/quadruped.usda]

Times are processor times of the gradient of a loss by all weights; kernels are what replays of captured steps and
adjoints take. Everything else counts as Python: torch's network and graph, copies, checks, and kernels outside steps.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch

import warpsim as ws
from warpsim.tape.calls import CallTable

_SCENE = Path(__file__).resolve().parents[2] / "scenes" / "quadruped.usda"
_REPEATS = 5


class _Clock:
    """Processor time inside replays."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, run: Callable[..., None]) -> Callable[..., None]:
        def replay(table: CallTable, first: int, count: int) -> None:
            begin = time.process_time()
            run(table, first, count)
            self.seconds += time.process_time() - begin

        return replay


def _network(sim: ws.Simulator) -> torch.nn.Sequential:
    torch.manual_seed(0)
    widths = [sim.nq + sim.nv, 64, 64, sim.control_size]
    layers: list[torch.nn.Module] = []
    for before, after in zip(widths[:-1], widths[1:], strict=True):
        layers += [torch.nn.Linear(before, after), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def _policy(sim: ws.Simulator, network: torch.nn.Module) -> Callable[[ws.Observed], torch.Tensor]:
    rest = next(iter(sim.all_controls(1).values()))[0]

    def policy(state: ws.Observed) -> torch.Tensor:
        seen = torch.cat([state.q, 0.1 * state.qd], -1).to(torch.float32)
        return rest + 0.05 * network(seen).to(rest.dtype)

    return policy


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--hold", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--scene", default=str(_SCENE))
    given = parser.parse_args()
    torch.set_num_threads(1)
    clock = _Clock()
    CallTable.run = clock.timed(CallTable.run)  # type: ignore[method-assign]
    sim = ws.Simulator(given.scene, worlds=given.worlds, outputs=())
    network = _network(sim)
    policy, weights = _policy(sim, network), list(network.parameters())
    for hold in given.hold:
        times = []
        for _ in range(_REPEATS):
            clock.seconds, begin = 0.0, time.process_time()
            motion = sim.rollout_policy(policy, given.steps, hold=hold)
            torch.autograd.grad(motion.q[-1].square().sum(), weights)
            times.append((time.process_time() - begin, clock.seconds))
        total, inside = min(times[1:])
        print(
            f"{Path(given.scene).stem}, {given.worlds} worlds, {given.steps} steps, a control every {hold}: "
            f"gradient in {total:.3f} s of processor time, {100 * inside / total:.0f} % in kernels"
        )


if __name__ == "__main__":
    main()
