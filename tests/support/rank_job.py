"""What tests run on several ranks: `torchrun … rank_job.py MODE OUTPUT [ARGUMENT …]`; rank 0 writes numbers as bits."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch

import warpsim as ws
from identification_support import NOISE, pendulum_recordings
from warpsim.core.errors import RangeError
from warpsim.learn import SHAC
from warpsim.optimizers import RolloutProblem, Variable, Variables, multi_start
from warpsim.parallel import current, join, worlds_over_ranks
from warpsim.parallel.block_cost import measure_block, process_bytes
from warpsim.parallel.ranks import Ranks
from warpsim.sim.simulator import Simulator
from warpsim.tape import Memory
from warpsim.task import sweep

PENDULUM = Path(__file__).resolve().parents[2] / "scenes" / "pendulum.usda"
BOB, GRAVITY = "/World/Pendulum/Bob.physics:mass", "/World/Physics.physics:gravityMagnitude"


def bits(values: torch.Tensor) -> list[str]:
    return [float(value).hex() for value in values.detach().flatten()]


def toy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Operations whose last bits can depend on how many worlds are computed at once."""
    return (torch.exp(x).sin() * torch.tanh(y[:, :1])).sum(-1, keepdim=True) + torch.exp(-y)


def worlds() -> dict:
    x = torch.linspace(-2, 3, 7 * 13, dtype=torch.float64).reshape(13, 7).requires_grad_()
    y = torch.linspace(1, 2, 13 * 3, dtype=torch.float64).reshape(13, 3).requires_grad_()
    made = worlds_over_ranks(toy, x, y)
    slopes = torch.autograd.grad((made * torch.arange(39.0).reshape(13, 3)).sum(), (x, y))
    return {"made": bits(made), "slopes": [bits(slope) for slope in slopes]}


def errors() -> dict:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        bad = torch.nonzero(x[:, 0] == 9.0).flatten().tolist()
        if bad:
            raise RangeError(f"world {bad[0]}: nine", bad)
        return x[:, 0]

    try:
        worlds_over_ranks(refuse, torch.arange(12.0)[:, None])
    except RangeError as error:
        return {"worlds": error.worlds, "said": str(error), "notes": getattr(error, "__notes__", [])}
    return {}


def pendulum() -> RolloutProblem:
    sim = Simulator(PENDULUM)
    with torch.no_grad():
        data = sim.rollout(steps=60, parameters={GRAVITY: 12.0}, keep_every=10).q
    variables = Variables([Variable(sim.attribute(path), positive=True) for path in (GRAVITY, BOB)])
    return RolloutProblem(sim, variables, lambda t: (t.q - data).transpose(0, 1).flatten(1), steps=60, keep_every=10)


def starts(candidates: str = "5", explore: str = "3") -> dict:
    found = multi_start(
        pendulum(), seed=1, candidates=int(candidates), explore=int(explore), method="levenberg_marquardt", iterations=2
    )
    report = found.report
    seen = {"x": found.x, "explored": report.explored, "after": report.after, "loss": torch.tensor(found.loss)}
    return {name: bits(values) for name, values in seen.items()}


def identify(scene: str, count: str = "6", samples: str = "30") -> dict:
    found = ws.identify(
        pendulum_recordings(int(count), 1, samples=int(samples)),
        scene,
        [ws.Parameter("joint.damping:hinge", lower=0.0, upper=5.0), ws.Parameter("body.mass:bob", lower=0.1, upper=9)],
        noise={"joint:hinge": NOISE},
        iterations=3,
        check=True,
    )
    half = torch.as_tensor(found.uncertainty.half_width)
    return {"x": bits(found.x), "loss": float(found.loss).hex(), "half": bits(half)}


def train(worlds: str = "6", updates: str = "2", scene: str = "cartpole") -> dict:
    """Updates of a robot's policy, through all that a training keeps."""
    sim = Simulator(PENDULUM.with_name(f"{scene}.usda"), worlds=int(worlds))
    policy = sim.network_policy(hidden=(8,), seed=3)

    def starts(number: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(number)
        q = 0.3 * torch.randn(sim.worlds, sim.nq, dtype=torch.float64, generator=generator)
        return {"q": q, "qd": torch.zeros(sim.worlds, sim.nv, dtype=torch.float64)}

    def cost(states, controls):
        return states.q.square().sum(-1) + 1e-3 * controls.square().sum(-1)

    period = 2 * sim.timestep
    trainer = SHAC(
        sim, policy, cost, starts, window=4 * period, period=period, episode=8 * period, world_clip=3.0,
        evaluate_every=1, evaluate_seconds=4 * period,
    )  # fmt: skip
    made = trainer.train(int(updates))
    figures = torch.tensor([(i.cost, i.loss, i.gradient_norm, i.critic_error, i.score) for i in made])
    return {"weights": bits(policy.weights()), "mean": bits(trainer.normalizer.mean), "figures": bits(figures)}


def grid() -> dict:
    """A sweep, of which one column cannot be simulated."""
    found = sweep(PENDULUM, {BOB: [0.5, -1.0, 2.0, 3.0], GRAVITY: [8.0, 9.0, 10.0, 11.0, 12.0]}, steps=20)
    return {"table": found.csv()}


def several(scene: str) -> dict:
    """Small cases of all kinds, in one job: starting one takes longer than they do."""
    cases = {"worlds": worlds(), "errors": errors(), "starts": starts(), "grid": grid()}
    return {**cases, "identify": identify(scene), "train": train()}


def updates(worlds: str, steps: str, count: str) -> dict:
    """Updates of initial velocities: bytes received in one, s of the busiest rank, bytes of the largest."""
    sims: dict[int, Simulator] = {}

    def losses(speed: torch.Tensor) -> torch.Tensor:
        if len(speed) not in sims:
            sims[len(speed)] = Simulator(PENDULUM.with_name("hopper.usda"), worlds=len(speed))
        moved = sims[len(speed)].rollout(int(steps), qd=speed, outputs=())
        return moved.q.square().sum((0, 2)) + moved.qd.square().sum((0, 2))

    ranks = current()
    nv = Simulator(PENDULUM.with_name("hopper.usda")).nv
    speed = 0.1 * torch.randn(int(worlds), nv, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    speed.requires_grad_()
    took, before = [], ranks.received
    for _ in range(int(count) + 1):
        begun, before = time.process_time(), ranks.received
        (slopes,) = torch.autograd.grad(worlds_over_ranks(losses, speed).sum(), speed)
        took.append(time.process_time() - begun)
    received = ranks.received - before
    done = ranks.gather((min(took[1:]), process_bytes()), "what it took")
    most = {"seconds": max(seconds for seconds, _ in done), "memory": max(memory for _, memory in done)}
    return {"slopes": bits(slopes), "nv": nv, "received": received, **most}


def cost(worlds: str, steps: str) -> dict:
    """What a block of so many hoppers costs, measured in a fresh process."""
    sim = Simulator(PENDULUM.with_name("hopper.usda"), worlds=int(worlds))
    return vars(measure_block(sim, int(steps)))


def stuck(rank: str, how: str) -> dict:
    """A rank that dies or hangs between two exchanges."""
    ranks = current()
    worlds()
    if ranks.rank == int(rank):
        if how == "die":
            os.kill(os.getpid(), 9)
        if how == "stop":
            os.kill(os.getpid(), 19)
        time.sleep(1000)
    return worlds()


def full_disk(rank: str, folder: str) -> dict:
    """Rollouts whose checkpoints go to the disk, which is full on one rank."""
    if current().rank == int(rank):
        tempfile.tempdir = folder

    def tip(worlds: torch.Tensor) -> torch.Tensor:
        sim = Simulator(PENDULUM, worlds=len(worlds))
        moved = sim.rollout(steps=20000, start={"q": worlds}, memory=Memory("4MB", segment=2, storage="disk"))
        return moved.q[-1]

    x = torch.linspace(0.1, 0.8, 8, dtype=torch.float64)[:, None].requires_grad_()
    worlds_over_ranks(tip, x).sum().backward()
    return {"slopes": bits(x.grad)}


def die_at(ranks: Ranks, exchange: int) -> None:
    """Lets this process be killed when it comes to its nth exchange."""
    gather, count = ranks.gather, itertools.count(1)

    def dying(*arguments):
        if next(count) == exchange:
            os.kill(os.getpid(), signal.SIGKILL)
        return gather(*arguments)

    ranks.gather = dying


MODES = {
    mode.__name__: mode
    for mode in (worlds, errors, starts, grid, identify, train, several, updates, cost, stuck, full_disk)
}


def main() -> None:
    mode, output, *arguments = sys.argv[1:]
    options = json.loads(os.environ.get("JOIN", "{}"))
    files = os.environ.get("FILES", "").split()
    if "RANK" in os.environ:  # another file or version on one of the ranks
        files = [name.replace("{rank}", os.environ["RANK"]) for name in files]
    joined = join(files, **options) if "RANK" in os.environ else contextlib.nullcontext()
    rank, _, exchange = os.environ.get("KILLED", "").partition(":")  # on the first attempt: rank, number of exchange
    with joined as ranks:
        if ranks is not None and str(ranks.rank) == rank and ranks.restarts == 0:
            die_at(ranks, int(exchange))
        found = MODES[mode](*arguments)
        if ranks is not None:
            found["ranks"], found["restarts"] = [ranks.shares(13), *ranks.summary()], ranks.restarts
        if ranks is None or ranks.first:
            Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
