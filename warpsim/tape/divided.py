"""One launch over several cores: a fixed partition into ranges, which a crew shares when they are replayed.

Warp runs a launch on the CPU as one loop from zero. So a kernel that can be divided takes the first index of its range,

    @wp.kernel
    def _stretch_kernel(first: int, rest: wp.array(dtype=real), …):
        i = first + wp.tid()

and `launch_divided` launches it once per range. The partition depends on the size alone, not on the number of threads;
no range may read what another one writes, and no two may add to one number. So the bits are the same for any number of
threads, captured or not.

A thread makes an equal run of neighboring ranges of every launch. Number things so that a range reads mostly what the
same share of the launch before it wrote (springs by their nodes, say): numbers that move from one core's cache to
another's cost more than the arithmetic that is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from warpsim.tape.calls import division

RANGES = 16
"""At most: enough for equal shares of a workstation's cores, few enough to cost nothing by themselves."""

SMALLEST_RANGE = 256
"""Indices; smaller ranges are not worth a meeting of threads."""


def ranges(size: int, smallest: int = SMALLEST_RANGE) -> list[tuple[int, int]]:
    """(first, count) of each range of a launch over `size` indices."""
    parts = max(1, min(RANGES, size // smallest))
    edges = [size * k // parts for k in range(parts + 1)]
    return [(first, last - first) for first, last in zip(edges[:-1], edges[1:], strict=True) if last > first]


def launch_divided(
    kernel: wp.Kernel,
    size: int,
    inputs: Sequence[Any],
    outputs: Sequence[Any] = (),
    *,
    device: wp.Device,
    tape: wp.Tape | None = None,
    smallest: int = SMALLEST_RANGE,
) -> None:
    """Launches a kernel over `size` indices, range by range.

    Args:
        kernel: Its first argument is the first index of a range; the others follow.
        size: Indices.
        inputs: The kernel's further inputs.
        outputs: Its outputs.
        device: Where it runs.
        tape: Where to record the adjoint, which must be divisible too: an index adds only to gradients that no index of
            another range adds to. None: nothing is recorded.
        smallest: Least indices of a range.
    """
    parts = ranges(size, smallest)

    with division():
        for first, count in parts:
            wp.launch(
                kernel,
                dim=count,
                inputs=[first, *inputs],
                outputs=list(outputs),
                device=device,
                record_tape=False,
            )
    if tape is None:
        return

    def adjoint() -> None:
        given, made = ([tape.get_adjoint(a) for a in arrays] for arrays in (inputs, outputs))
        with division():
            for first, count in parts:
                wp.launch(
                    kernel,
                    dim=count,
                    inputs=[first, *inputs],
                    outputs=list(outputs),
                    adj_inputs=[0, *given],
                    adj_outputs=made,
                    device=device,
                    adjoint=True,
                    record_tape=False,
                )

    tape.record_func(adjoint, arrays=[a for a in (*inputs, *outputs) if isinstance(a, wp.array) and a.grad])
