"""Errors planted into the adjoints of a step's stages, from outside: what a gradient check has to find.

A stage of `warpsim.rigid.step.step` is replaced by itself with adjoints recorded before and after it. Recorded after,
one runs before the stage's own adjoint on the way back: it can scale what comes in, or overwrite a buffer the adjoint
reads. Recorded before, one runs after it: it can take back what the adjoint has added to one of its inputs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import pytest
import warp as wp

from warpsim.core.precision import real
from warpsim.core.stages import stage
from warpsim.rigid.step import step

_ALIVE: list[Any] = []
"""A captured graph does not keep the memory it works on."""

Find = Callable[[dict[str, Any]], wp.array]
"""From the arguments of a stage, by name, to one of the arrays it works on."""


@wp.kernel(enable_backward=False)
def _scale_kernel(x: wp.array(dtype=real), factor: real):
    i = wp.tid()
    x[i] = factor * x[i]


def scale(array: wp.array, factor: float) -> None:
    """Multiplies an array of any real element type in place."""
    size = array.size * wp.types.type_size_in_bytes(array.dtype) // wp.types.type_size_in_bytes(real)
    flat = wp.array(ptr=array.ptr, shape=(size,), dtype=real, device=array.device)
    flat._ref = array
    wp.launch(_scale_kernel, dim=size, inputs=[flat, factor], device=array.device, record_tape=False)


@dataclass(frozen=True)
class Fault:
    """An error of one stage's adjoint.

    Attributes:
        stage: Function in `warpsim.rigid.step.step`.
        kind: "scale" the adjoint of an array it wrote, "forget" what it adds to the adjoint of one it reads,
            "overwrite" the values of one it reads.
        array: Which array.
        factor: What adjoint or values are multiplied by.
    """

    stage: str
    kind: str
    array: Find
    factor: float = 0.0

    def plant(self, patch: pytest.MonkeyPatch) -> None:
        """Replaces the stage."""
        healthy = getattr(step, self.stage)
        names = inspect.signature(healthy)

        @wraps(healthy)
        def faulty(*args: Any, **kwargs: Any) -> None:
            bound = names.bind(*args, **kwargs).arguments
            array, tape = self.array(bound), wp._src.context.runtime.tape
            spare = wp.zeros_like(array) if self.kind == "forget" else None
            _ALIVE.append(spare)
            if tape is not None and spare is not None:
                tape.record_func(lambda: wp.copy(array.grad, spare), arrays=[])
            healthy(*args, **kwargs)
            if tape is None:
                return
            if spare is not None:
                tape.record_func(lambda: wp.copy(spare, array.grad), arrays=[])
            elif self.kind == "scale":
                tape.record_func(lambda: scale(array.grad, self.factor), arrays=[])
            else:
                tape.record_func(lambda: scale(array, self.factor), arrays=[])

        patch.setattr(step, self.stage, stage(faulty))


@dataclass(frozen=True)
class AdjointFault:
    """A hand-written adjoint of `warpsim.rigid.step.step` whose result is multiplied by a factor."""

    function: str
    array: Find
    factor: float

    def plant(self, patch: pytest.MonkeyPatch) -> None:
        """Replaces the adjoint."""
        healthy = getattr(step, self.function)
        names = inspect.signature(healthy)

        def faulty(*args: Any) -> None:
            healthy(*args)
            scale(self.array(names.bind(*args).arguments).grad, self.factor)

        patch.setattr(step, self.function, faulty)
