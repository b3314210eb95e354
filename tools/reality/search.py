"""Rollouts that CMA-ES needs for the loss of our fit: `python -m tools.reality.search tosses.npz [--tosses 32]`.

Same tosses, model, softening, loss, priors and bounds, all 80 rows; CMA-ES gets the initial states that our fit ended
with, which our fit had to find. Ours are counted up to that loss: all but those of the last Jacobian, which is for the
intervals. CMA-ES stops at our loss, or after a multiple of our rollouts.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

import warpsim as ws
from tools.reality.cma import minimize
from tools.reality.protocol import OPTIONS, PLAIN_SCENE, SAMPLES, SOFTENED, plain_parameters, split
from warpsim.identification import IdentifiedScene, read_recordings
from warpsim.identification.gauss_newton import GaussNewton, Setting


def main() -> None:
    """Fits, searches, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="tosses.npz")
    parser.add_argument("--tosses", type=int, default=128, help="of those that seed 0 trains on")
    parser.add_argument("--multiple", type=float, default=12.0, help="of our rollouts, after which the search gives up")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of CMA-ES")
    parser.add_argument("--batch", type=int, default=OPTIONS["batch"], help="tosses of our fit's stages but the last")
    arguments = parser.parse_args()
    recordings = read_recordings(arguments.data)
    train, _ = split(0, len(recordings))
    used = [recordings[i] for i in train[: arguments.tosses]]
    options = {**SOFTENED, "batch": arguments.batch}
    fit = ws.identify(used, PLAIN_SCENE, plain_parameters(), validation=0.0, check=False, **options)
    spent = fit.rollouts - (1 + len(fit.x)) * len(fit.train)
    print(f"our fit: loss {fit.loss:.1f} with {spent:.0f} rollouts of a toss", flush=True)
    for seed in arguments.seeds:
        print(f"seed {seed}: {searched(fit, spent, arguments.multiple, seed)}", flush=True)


def searched(fit: IdentifiedScene, ours: float, multiple: float, seed: int) -> str:
    """What CMA-ES reaches within a multiple of our rollouts."""
    solver = GaussNewton(fit.predictor, torch.tensor(fit.train), robust=float(SOFTENED["robust"]))
    setting = Setting(SAMPLES, fit.contacts, 1)

    def losses(candidates: np.ndarray) -> np.ndarray:
        x = torch.tensor(candidates)
        own = solver.z.expand(len(x), *solver.z.shape)
        with torch.no_grad():
            return solver.losses(x, own, solver.residuals(x, own, setting), setting).nan_to_num(torch.inf).numpy()

    n, tosses = len(solver.x), len(fit.train)
    count = 4 + int(3 * np.log(n))
    generations = int(multiple * ours / (count * tosses))
    found = minimize(
        losses, np.zeros(n), solver.lower, solver.upper, target=fit.loss, generations=generations, seed=seed
    )
    spent = found.candidates * tosses
    reached = "reached it" if found.loss <= fit.loss else "did not reach it"
    return f"CMA-ES: loss {found.loss:.1f}, {reached}, {spent} rollouts, {spent / ours:.1f} times ours"


if __name__ == "__main__":
    main()
