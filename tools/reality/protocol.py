"""The protocol: splits, what may vary, errors.

Of 400 tosses, 144 (fixed) were used to choose the model, the options and the priors below. The other 256 are split at
random into 128 for training and 128 for testing, three times; a test set is looked at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.identification import Parameter, Recording

SCENE = Path(__file__).with_name("cube_margin.xml")
"""Contacts of the physical model begin 4 mm before touch and harden over 8 mm."""
PLAIN_SCENE = Path(__file__).with_name("cube.xml")
"""The same cube, with contacts that begin at touch."""
RISING_SCENE = Path(__file__).with_name("cube_rising.xml")
"""Contacts begin at touch and harden over 8 mm."""
SAMPLES, RATE, WIDTH, SUBSTEPS = 80, 148.0, 0.1048, 4
TRAIN = TEST = 128
SPLITS = (1, 2, 3)
_DEVELOPMENT_SEED = 0

OPTIONS: dict[str, Any] = dict(
    noise={"q": [0.002] * 3 + [0.03] * 3},
    velocity_noise=[0.2] * 3 + [1.0] * 3,
    samples=SAMPLES,
    start="smoothed",
    start_samples=20,
    robust=1.0,
    softening=0.0,
    batch=32,
    substeps=SUBSTEPS,
    iterations=5,
    tolerance=3e-3,
    difference=0.1,
)
"""Of `identify`, chosen on the development tosses: contacts are soft by their margin, which MuJoCo has as well."""
SOFTENED: dict[str, Any] = {**OPTIONS, "softening": 0.004, "batch": None, "iterations": 3}
"""For `PLAIN_SCENE`: softened by 4 mm to the end, all tosses in every stage."""


def plain_parameters() -> list[Parameter]:
    """What may vary of `PLAIN_SCENE`, with priors: the authors' values within wide margins."""
    step = 1 / RATE / SUBSTEPS
    cube = "shape.solref:cube"
    return [
        Parameter("shape.friction:cube", [0], lower=0.02, upper=1.0, prior=0.1, scale=0.02),
        Parameter("body.com:cube", prior=0.01, scale=0.005),
        Parameter("body.inertia:cube", [0, 1, 2], lower=3e-4, upper=2.4e-3, prior=4e-4, scale=8e-5),
        Parameter(cube, [0], lower=2.2 * step, upper=0.1, start=0.02, prior=0.015, scale=0.003),
        Parameter(cube, [1], lower=0.05, upper=2.0, start=0.4, prior=0.5, scale=0.1),
        Parameter("shape.solimp:cube", [0], lower=0.05, upper=0.99, prior=0.15, scale=0.05),
        Parameter("shape.size:cube", tied=True, prior=0.03, scale=0.02),
        Parameter("world.gravity", [2], prior=0.3, scale=0.2),
        Parameter("world.gravity", [0, 1], prior=0.1, scale=0.05),
    ]


def parameters() -> list[Parameter]:
    """The same for `SCENE`, where the impedance rises from about 0 over a width that may vary."""
    impedance = "shape.solimp:cube"
    return [
        *(p for p in plain_parameters() if p.key != impedance),
        Parameter(impedance, [0], lower=0.005, upper=0.9, start=0.05, prior=0.1, scale=0.02),
        Parameter(impedance, [2], lower=0.001, upper=0.05, start=0.008, prior=0.01, scale=0.002),
    ]


def few_parameters() -> list[Parameter]:
    """What may vary of `PLAIN_SCENE` with few tosses: not gravity, and the inertia as a whole."""
    fixed = ("world.gravity", "body.inertia:cube")
    inertia = Parameter("body.inertia:cube", tied=True, lower=0.4, upper=3.0, prior=0.5, scale=0.1)
    return [*(p for p in plain_parameters() if p.key not in fixed), inertia]


def split(seed: int, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Training and test tosses of a seed; seed 0: those on which the protocol was developed."""
    order = np.random.default_rng(_DEVELOPMENT_SEED).permutation(count)
    if seed == _DEVELOPMENT_SEED:
        return order[:TRAIN], order[TRAIN + TEST :]
    pool = np.random.default_rng(seed).permutation(order[: TRAIN + TEST])
    return pool[:TRAIN], pool[TRAIN:]


def measured(recordings: Sequence[Recording], chosen: np.ndarray) -> np.ndarray:
    """(tosses, rows, 13) states."""
    return np.stack([np.asarray(recordings[i].channels["states"])[:SAMPLES] for i in chosen])


def errors(predicted: np.ndarray, truth: np.ndarray, counted: np.ndarray | None = None) -> tuple[float, float]:
    """Mean over tosses and rows 1 … 79: position in % of the cube's width, rotation in degrees.

    Args:
        predicted: (tosses, rows, 7 or more).
        truth: Likewise.
        counted: (tosses, rows): rows that count; None: all from 1 on.
    """
    weight = np.ones(truth.shape[:2]) if counted is None else counted.astype(float)
    weight = weight[:, 1:] / weight[:, 1:].sum()
    apart = np.linalg.norm(predicted[:, 1:, :3] - truth[:, 1:, :3], axis=-1)
    cosine = np.abs((predicted[:, 1:, 3:7] * truth[:, 1:, 3:7]).sum(-1)).clip(0, 1)
    turned = np.degrees(2 * np.arccos(cosine))
    return 100 * float((weight * apart).sum()) / WIDTH, float((weight * turned).sum())
