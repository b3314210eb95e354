"""Every error a user can meet derives from `WarpsimError`; its message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable
from typing import Any


class WarpsimError(Exception):
    """Base of all errors raised on purpose by warpsim."""


class SceneError(WarpsimError):
    """A scene description that cannot be simulated; the message names the body, joint or USD path."""


class UnsupportedError(WarpsimError):
    """Input that is valid elsewhere but that warpsim does not model."""


class InputError(WarpsimError):
    """A wrong shape, dtype, device or value handed to a public call."""


class OutputError(WarpsimError):
    """A file that cannot be written, or must not be; what was there before is unchanged."""


class TaskError(WarpsimError):
    """A task that cannot be optimized; the message begins with the prim that is wrong."""


class SimulationError(WarpsimError):
    """A rollout that failed while running (non-finite values, overflow); names step, world and stage.

    Attributes:
        trajectory: What a simulator's rollout had reached before (a `Trajectory`, which can be saved), else None.
    """

    trajectory: Any = None


class RangeError(InputError, SimulationError):
    """A value that nothing can be simulated with, such as a negative mass: a search steps around it.

    Attributes:
        worlds: All worlds that have such a value, where each has its own; else empty.
    """

    def __init__(self, message: str, worlds: Iterable[int] = ()) -> None:
        """Takes the message, and the worlds where they are known."""
        super().__init__(message)
        self.worlds = tuple(worlds)


class UnconvergedError(SimulationError):
    """A gradient through a step whose solver did not converge: it would be that of another step.

    Attributes:
        step: The last such step.
        world: The first world in which it was so.
        residual: Of its solve: norm of the forces out of balance, over the sum of the mass matrix's diagonal.
    """

    def __init__(self, message: str, step: int, world: int, residual: float) -> None:
        """Takes the message and the place."""
        super().__init__(message)
        self.step, self.world, self.residual = step, world, residual


class UnconvergedWarning(UserWarning):
    """A gradient goes through steps whose solver did not converge."""


class CompileError(WarpsimError):
    """Kernels that cannot be compiled, or not be kept."""


class UntriedWarpWarning(UserWarning):
    """This version of Warp was not tried: captures are replayed by Warp itself, and slower."""


class UnsupportedPhysicsWarning(UserWarning):
    """A file was read whose physics is only in part simulated."""


class CacheWarning(UserWarning):
    """Something was computed that could not be kept for the next run."""


class AssumedWarning(UserWarning):
    """A file was read that leaves open something on which its motion depends."""


class UnknownNameError(InputError, KeyError):
    """A name that does not exist; the message offers the nearest ones."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


MAXIMUM_COUNT = 2**31 - 1
"""What kernels can count to."""


def whole_number(name: str, value: Any, minimum: int = 1, maximum: int = MAXIMUM_COUNT) -> int:
    """The value of an argument that counts something.

    Args:
        name: The argument.
        value: What it was given.
        minimum: The smallest that makes sense.
        maximum: The largest that can be counted.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name}={value!r}; give a whole number, e.g. {name}=round(…)") from None
    if isinstance(value, bool) or number < minimum:
        raise InputError(f"{name}={value!r}; give a whole number, at least {minimum}")
    if number > maximum:
        raise InputError(f"{name}={value!r} is more than can be counted; give at most {maximum}")
    return number


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Builds the error for a name that is not there, with the nearest known names.

    Args:
        kind: What was looked up, e.g. "body".
        name: The name asked for.
        known: All names that would have been right.
    """
    known, name = list(known), str(name)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(n) for n in near)}? " if near else ""
    shown = ", ".join(known[:20]) + (f", … ({len(known)} in all)" if len(known) > 20 else "")
    return UnknownNameError(f"no {kind} {name!r}; {hint}{kind} names: {shown or '(none)'}")
