"""The parameters of a program as one set: their checksums, and their gradients cleared and checked together.

Views into host memory are made once, since a program may have a hundred parameters and a rollout few steps.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np
import warp as wp

from warpsim.core.errors import InputError
from warpsim.core.host_path import on_host
from warpsim.tape.diagnostics import NonFiniteError


class StaleInputError(InputError):
    """Something the forward pass read has changed before the backward pass read it again."""


class ParameterSet:
    """All parameters of a program."""

    def __init__(self, parameters: Mapping[str, wp.array]) -> None:
        """Takes the arrays; those without a gradient now will not get one."""
        self._values = {name: _Array(array) for name, array in parameters.items()}
        self._in_place: list[memoryview] | None = None
        if all(array.contiguous for array in self._values.values()):
            self._in_place = [array.read().data for array in self._values.values()]
        self._gradients = {name: _Array(p.grad) for name, p in parameters.items() if p.grad is not None}

    def checksums(self) -> dict[str, int]:
        """CRC-32 of the value of each parameter."""
        return dict(zip(self._values, map(zlib.crc32, self._contents()), strict=True))

    def _contents(self) -> list[memoryview]:
        """The bytes of each parameter, where they are if possible."""
        if self._in_place is not None:
            return self._in_place
        return [np.ascontiguousarray(array.read()).data for array in self._values.values()]

    def compare(self, before: Mapping[str, int]) -> None:
        """Raises if a parameter is not what it was when `before` was taken."""
        now = self.checksums()
        if now != before:
            name = next(name for name in now if now[name] != before[name])
            raise StaleInputError(
                f"parameter {name!r} changed between the forward and the backward pass; run forward again"
            )

    def zero_gradients(self) -> None:
        """Clears all gradients."""
        for array in self._gradients.values():
            array.zero()

    def check_gradients(self) -> None:
        """Raises if a gradient is not finite."""
        for name, array in self._gradients.items():
            bad = ~np.isfinite(array.read())
            if bad.any():
                raise NonFiniteError(
                    f"the gradient of parameter {name!r} is not finite, world {int(np.argwhere(bad)[0][0])}"
                )


class _Array:
    """An array and, on the CPU, its view in NumPy."""

    __slots__ = ("_array", "_host")

    def __init__(self, array: wp.array) -> None:
        self._array = array
        self._host = array.numpy() if on_host(array.device) else None

    @property
    def contiguous(self) -> bool:
        return self._host is not None and self._host.flags.c_contiguous

    def read(self) -> np.ndarray:
        return self._host if self._host is not None else self._array.numpy()

    def zero(self) -> None:
        if self._host is not None:
            self._host.fill(0)
        else:
            self._array.zero_()
