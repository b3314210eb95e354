"""One stage of a step as a function of every array it could read, differentiated by its tape and by differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import warp as wp

from finite_differences import directional_estimate
from rigid_support import Evaluation
from warpsim.rigid.model.model import GROUPS, Model
from warpsim.tape.dtypes import is_real

TOLERANCE = 1e-6

UNIT = ("body.rotation", "joint.axis")
"""Parameters that the derivation makes unit: the kinematics may take them as such, so they move on their sphere."""


def check_direction(name: str, gradient: np.ndarray, direction: np.ndarray, f: Callable, x: np.ndarray) -> float:
    """Asserts that a gradient agrees with central differences along a direction; returns the relative deviation.

    Relative to the sum of the terms' magnitudes: the terms of a scalar product may cancel, their errors do not.
    """
    terms = gradient * direction
    estimate = directional_estimate(f, x, direction)
    scale = max(float(np.abs(terms).sum()), abs(float(estimate.value)))
    deviation = abs(float(terms.sum()) - float(estimate.value))
    # What differences cannot know is granted, as long as it is small itself.
    assert estimate.error <= TOLERANCE * scale + 1e-9, (name, "the reference is not known well enough", estimate, scale)
    assert deviation <= TOLERANCE * scale + estimate.error, (name, deviation, scale, estimate)
    return deviation / scale if scale > 0.0 else 0.0


def direction_for(name: str, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random direction of the size of the numbers of array `name`; open ends of ranges stay open."""
    finite = np.isfinite(value)
    sizes = np.where(finite, np.abs(np.where(finite, value, 0.0)), 0.0)
    # Within an item (a vector, an inertia) sizes mix; between items they do not, or small inertias would turn negative.
    item = sizes.max(axis=-1, keepdims=True) if value.ndim > 2 else sizes
    floor = np.where(item > 0.0, 0.1 * item, 0.1 * sizes.max(initial=0.0) or 0.01)
    if name in ("body.mass", "body.inertia"):
        finite &= item > 0.0  # a massless body is a corner of the medium's drag
    if name.startswith(("body.", "fluid.")):
        finite[:, 0] = False  # the world, whose numbers mean nothing
    direction = np.where(finite, rng.normal(size=value.shape) * np.maximum(sizes, floor), 0.0)
    return tangent(value, direction) if name in UNIT else direction


def tangent(value: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """The direction without what would change the length of each unit item."""
    return direction - value * (value * direction).sum(axis=-1, keepdims=True)


def model_arrays(model: Model) -> dict[str, wp.array]:
    """Every parameter array the steps read that carries a gradient."""
    found = {}
    for group in GROUPS:
        struct = getattr(model, group)
        found |= {f"{group}.{name}": getattr(struct, name) for name in struct._cls.vars}
    found["joint.force_range"] = model.joint_force_range
    return {name: a for name, a in found.items() if is_real(a.dtype) and a.size and a.grad is not None}


class IsolatedStage:
    """Runs a stage on the arrays of an evaluation.

    The loss is a random linear form of what the stage writes; it is differentiated with respect to every array.
    """

    def __init__(
        self,
        e: Evaluation,
        run: Callable[[wp.Tape | None], None],
        outputs: tuple[str, ...],
        *,
        extra: dict[str, wp.array] | None = None,
        fixed: tuple[str, ...] = (),
        seed: int = 0,
    ) -> None:
        """Takes the arrays' present values as the point of differentiation.

        Args:
            e: Holds the model, state, controls and intermediates, with gradients.
            run: Runs the stage, on the given tape if there is one.
            outputs: Names of the arrays it writes or adds to.
            extra: Arrays beyond those of the evaluation, e.g. the next state.
            fixed: Names of arrays that the stage's adjoint holds fixed on purpose.
            seed: Of the random form.
        """
        self.e, self.run = e, run
        work = {f"work.{f.name}": getattr(e.work, f.name) for f in fields(e.work)}
        arrays = {f"state.{n}": a for n, a in e.state.items()} | {f"control.{n}": a for n, a in e.control.items()}
        arrays |= model_arrays(e.model) | (extra or {})
        arrays |= {n: a for n, a in work.items() if isinstance(a, wp.array) and a.size and a.grad is not None}
        self.arrays = {name: array for name, array in arrays.items() if name not in fixed}
        self.start = {name: array.numpy().copy() for name, array in self.arrays.items()}
        self.rng = np.random.default_rng(seed)
        self.weights = {name: self.rng.normal(size=self.start[name].shape) for name in outputs}

    def loss(self, changed: dict[str, np.ndarray]) -> float:
        self._load(changed)
        self.run(None)
        value = sum((weight * self.arrays[name].numpy()).sum() for name, weight in self.weights.items())
        self._load(dict.fromkeys(changed))
        return float(value)

    def gradients(self) -> dict[str, np.ndarray]:
        self._load(dict.fromkeys(self.arrays))
        for array in self.arrays.values():
            array.grad.zero_()
        tape = wp.Tape()
        with tape:
            self.run(tape)
        for name, weight in self.weights.items():
            self.arrays[name].grad.assign(weight)
        tape.backward()
        return {name: array.grad.numpy().copy() for name, array in self.arrays.items()}

    def check(self, *, without: tuple[str, ...] = ()) -> dict[str, float]:
        """Asserts all gradients but those named; returns the relative deviation of those that are not zero."""
        deviations = {}
        for name, gradient in self.gradients().items():
            if name in without:
                continue
            direction = direction_for(name, self.start[name], self.rng)
            f = lambda x, n=name: self.loss({n: x})  # noqa: E731
            found = check_direction(name, gradient, direction, f, self.start[name])
            if gradient.any():
                deviations[name] = found
        return deviations

    def _load(self, changed: dict[str, np.ndarray | None]) -> None:
        """Sets arrays, None to their start, and all outputs to theirs."""
        for name in {**self.weights, **changed}:
            value = changed.get(name)
            self.arrays[name].assign(np.ascontiguousarray(self.start[name] if value is None else value))
