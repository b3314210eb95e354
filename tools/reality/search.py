"""Rollouts that CMA-ES needs for the loss of our fit: `python -m tools.reality.search tosses.npz [--tosses 32]`.

Same tosses, model, softening, loss, priors and bounds, all 80 rows; CMA-ES gets the initial states that our fit ended
with, which our fit had to find. It stops at our loss, or after a multiple of our rollouts.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

import warpsim as ws
from tools.reality.cma import minimize
from tools.reality.protocol import OPTIONS, SAMPLES, SCENE, parameters, split
from warpsim.identification import IdentifiedScene, read_recordings
from warpsim.identification.gauss_newton import GaussNewton, Setting


def main() -> None:
    """Fits, searches, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="tosses.npz")
    parser.add_argument("--tosses", type=int, default=32, help="of those that seed 0 trains on")
    parser.add_argument("--multiple", type=float, default=20.0, help="of our rollouts, after which the search gives up")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    recordings = read_recordings(arguments.data)
    train, _ = split(0, len(recordings))
    used = [recordings[i] for i in train[: arguments.tosses]]
    fit = ws.identify(used, SCENE, parameters(), validation=0.0, check=False, **OPTIONS)
    print(f"our fit: loss {fit.loss:.1f} with {fit.rollouts:.0f} rollouts of a toss", flush=True)
    print(searched(fit, arguments.multiple, arguments.seed))


def searched(fit: IdentifiedScene, multiple: float, seed: int) -> str:
    """What CMA-ES reaches."""
    solver = GaussNewton(fit.predictor, torch.tensor(fit.train), robust=float(OPTIONS["robust"]))
    setting = Setting(SAMPLES, fit.contacts, 1)

    def losses(candidates: np.ndarray) -> np.ndarray:
        x = torch.tensor(candidates)
        own = solver.z.expand(len(x), *solver.z.shape)
        with torch.no_grad():
            return solver.losses(x, own, solver.residuals(x, own, setting)).nan_to_num(torch.inf).numpy()

    n, tosses = len(solver.x), len(fit.train)
    count = 4 + int(3 * np.log(n))
    generations = int(multiple * fit.rollouts / (count * tosses))
    found = minimize(
        losses, np.zeros(n), solver.lower, solver.upper, target=fit.loss, generations=generations, seed=seed
    )
    spent = found.candidates * tosses
    reached = "reached it" if found.loss <= fit.loss else "did not reach it"
    return f"CMA-ES: loss {found.loss:.1f}, {reached}, {spent} rollouts, {spent / fit.rollouts:.1f} times ours"


if __name__ == "__main__":
    main()
