"""Gradients of many worlds: one process, two threads and two ranks, in turns.

    python -m tools.bench.ranks [--worlds 64] [--steps 100] [--blocks 16] [--json FILE] [--markdown FILE]

Each side is a process of its own (the ranks two), waiting while another one has its turn. A turn is an update as an
optimizer makes it: losses of all worlds, and their gradient by the worlds' initial velocities. The bits of both are
compared. The wall clock needs an idle machine; processor times, printed beside it, do not.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import zlib
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import torch

import warpsim as ws
from tools.bench.report import add_files, environment, publish
from warpsim.parallel import join, worlds_over_ranks

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "hopper.usda"
ONE, THREADS, RANKS = "one process", "two threads", "two ranks"


@dataclass
class Side:
    """What runs in turns with the others.

    Attributes:
        label: What it is.
        processes: Its processes.
        wall: s of each turn, until the last of them has ended.
        processor: s of processor time of each turn, of the process that took most.
        checksum: Of losses and gradient.
    """

    label: str
    processes: list[subprocess.Popen[str]]
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    checksum: set[int] = field(default_factory=set)

    def turn(self, *, counted: bool = True) -> None:
        """One round."""
        for process in self.processes:
            _stream(process.stdin).write("go\n")
            _stream(process.stdin).flush()
        said = []
        for process in self.processes:
            line = _stream(process.stdout).readline()
            if not line:
                raise RuntimeError(f"{self.label}: a process has ended with code {process.wait()}; see above")
            said.append(json.loads(line))
        if counted:
            self.wall.append(max(each["wall"] for each in said))
            self.processor.append(max(each["processor"] for each in said))
            self.checksum |= {each["checksum"] for each in said}

    def end(self) -> None:
        """Lets the processes go."""
        for process in self.processes:
            _stream(process.stdin).close()
        for process in self.processes:
            process.wait()


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def work(threads: int, worlds: int, steps: int, blocks: int, updates: int, scene: str) -> None:
    """A side's process: a round for each line it reads, and what it took as a line of JSON."""
    torch.set_num_threads(1)
    simulators: dict[int, ws.Simulator] = {}

    def losses(speed: torch.Tensor) -> torch.Tensor:
        if len(speed) not in simulators:
            simulators[len(speed)] = ws.Simulator(scene, worlds=len(speed))
        sim = simulators[len(speed)]
        moved = sim.rollout(steps=steps, qd=speed, outputs=(), threads=threads)
        return moved.q.square().sum((0, 2)) + moved.qd[-1].square().sum(-1)

    joined = join(blocks=blocks, silence=600.0) if "RANK" in os.environ else nullcontext()
    nv = ws.Simulator(scene).nv
    speed = 0.1 * torch.randn(worlds, nv, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    speed.requires_grad_()
    with joined:
        for _line in sys.stdin:
            begun, used = time.perf_counter(), time.process_time()
            for _ in range(updates):
                loss = worlds_over_ranks(losses, speed)
                (gradient,) = torch.autograd.grad(loss.mean(), speed)
            took = {"wall": time.perf_counter() - begun, "processor": time.process_time() - used}
            sums = zlib.crc32(gradient.numpy().tobytes(), zlib.crc32(loss.detach().numpy().tobytes()))
            print(json.dumps({**took, "checksum": sums}), flush=True)


def start(label: str, options: argparse.Namespace) -> Side:
    """Starts a side's processes."""
    threads = 2 if label == THREADS else 1
    arguments = [threads, options.worlds, options.steps, options.blocks, options.updates, options.scene]
    command = [sys.executable, "-m", "tools.bench.ranks", "--side", *map(str, arguments)]
    common = {**os.environ, "OMP_NUM_THREADS": "1"}
    environments = [common]
    if label == RANKS:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = str(free.getsockname()[1])
        meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        environments = [{**common, **meeting, "RANK": str(rank)} for rank in range(2)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return Side(label, [subprocess.Popen(command, env=each, text=True, **pipes) for each in environments])


def ratios(sides: list[Side], clock: str, over: str, of: str) -> float:
    """How many times as fast a side is as another: the median over rounds."""
    times = {side.label: getattr(side, clock) for side in sides}
    return statistics.median(a / b for a, b in zip(times[over], times[of], strict=True))


def to_markdown(sides: list[Side], options: argparse.Namespace) -> str:
    """The table and the two ratios."""
    here = environment("tools.bench.ranks")
    lines = [
        f"`{here['command']}`",
        "",
        f"{here['processor']}, {here['cores']} cores. {Path(options.scene).stem}, {options.worlds} worlds, "
        f"{options.steps} steps, {options.blocks} blocks; s for an update (losses and gradient), median of "
        f"{options.repeats} rounds.",
        "",
        "| | wall clock | processor time of the busiest process |",
        "|---|---|---|",
    ]
    for side in sides:
        wall, processor = (statistics.median(times) / options.updates for times in (side.wall, side.processor))
        lines.append(f"| {side.label} | {wall:.4f} | {processor:.4f} |")
    same = len({checksum for side in sides for checksum in side.checksum}) == 1
    lines += [
        "",
        f"Two ranks are {ratios(sides, 'wall', ONE, RANKS):.2f} times as fast as one process by the wall clock "
        f"({ratios(sides, 'processor', ONE, RANKS):.2f} by processor time), and "
        f"{ratios(sides, 'wall', THREADS, RANKS):.2f} times as fast as two threads. All have the same bits: "
        f"{'yes' if same else 'NO'}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs the sides in turns."""
    if sys.argv[1:2] == ["--side"]:
        threads, worlds, steps, blocks, updates = map(int, sys.argv[2:7])
        work(threads, worlds, steps, blocks, updates, sys.argv[7])
        return 0
    parser = argparse.ArgumentParser(prog="python -m tools.bench.ranks", description=__doc__)
    parser.add_argument("--scene", default=str(SCENE))
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--updates", type=int, default=3, help="in a turn")
    parser.add_argument("--repeats", type=int, default=7)
    add_files(parser)
    options = parser.parse_args()
    sides = [start(label, options) for label in (ONE, THREADS, RANKS)]
    try:
        for side in sides:
            side.turn(counted=False)
        for _ in range(options.repeats):
            for side in sides:
                side.turn()
    finally:
        for side in sides:
            side.end()
    rows = [{"label": s.label, "wall": s.wall, "processor": s.processor, "checksum": sorted(s.checksum)} for s in sides]
    found = {"environment": environment("tools.bench.ranks"), "options": vars(options), "rows": rows}
    publish(options, to_markdown(sides, options), {**found, "options": {k: str(v) for k, v in vars(options).items()}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
