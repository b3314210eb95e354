"""Catching misuse: changed inputs (by checksum) and steps that break the rules of a program."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from warpsim.core.errors import InputError
from warpsim.tape import frames
from warpsim.tape.dtypes import fill_any
from warpsim.tape.parameters import ParameterSet
from warpsim.tape.program import Program
from warpsim.tape.segment import Segment


def check_step(program: Program, state: frames.Packed, inputs: frames.Packed) -> None:
    """Runs one step in several ways and raises if it breaks the rules in `program.py`.

    Args:
        program: The program to be tried.
        state: Frame 0 is the state to start from.
        inputs: Frame 0 are its inputs.

    Raises:
        InputError: If the step writes its state, inputs or parameters, leaves part of its result unwritten, depends
            on old contents of its intermediates, or gives other results with a tape than without.
    """
    trials = [_try_step(program, state, inputs, filling, recorded) for filling, recorded in _TRIALS]
    for (filling, recorded), trial in zip(_TRIALS[1:], trials[1:], strict=True):
        for name, value in trial.items():
            if value == trials[0][name]:
                continue
            if recorded:
                raise InputError(f"the step gives another {name} with a tape than without")
            raise InputError(
                f"the step's {name} depends on what was in its arrays before (seen with {filling}): it leaves an "
                "element unwritten, or reads intermediates before writing them (ask for `accumulator=True` if it adds "
                "into them)"
            )


_ODD = 77
"""An integer that a step would hardly write everywhere."""

_TRIALS = ((0.0, False), (np.nan, False), (0.0, True))
"""What arrays hold before the step, and whether it is taped."""


def _try_step(
    program: Program, state: frames.Packed, inputs: frames.Packed, filling: float, recorded: bool
) -> dict[str, bytes]:
    segment = Segment(program, 1, capture=False)
    segment.states.copy_frame(0, state, 0)
    segment.inputs.copy_frame(0, inputs, 0)
    whole = 0 if filling == 0.0 else _ODD
    for block in segment.states.fields.values():
        fill_any(block.array[1], filling, whole)
    for block in segment.outputs.fields.values():
        fill_any(block.array[0], filling, whole)
    segment.fill_work(0, filling)
    before = _read_only(program, segment)
    segment.steps(0, 1, recorded=recorded)()
    for name, value in _read_only(program, segment).items():
        if value != before[name]:
            raise InputError(f"the step writes its {name}; it must write only next_state, outputs and work")
    return {
        **{f"next state {name!r}": block.read(1).tobytes() for name, block in segment.states.fields.items()},
        **{f"output {name!r}": block.read(0).tobytes() for name, block in segment.outputs.fields.items()},
    }


def _read_only(program: Program, segment: Segment) -> dict[str, Any]:
    return {
        **{f"state {name!r}": _checksum(block) for name, block in segment.states.fields.items()},
        **{f"input {name!r}": _checksum(block) for name, block in segment.inputs.fields.items()},
        **{f"parameter {name!r}": value for name, value in ParameterSet(program.parameters).checksums().items()},
    }


def _checksum(block: frames.Block) -> int:
    """CRC-32 of frame 0."""
    return zlib.crc32(np.ascontiguousarray(block.read(0)).data)
