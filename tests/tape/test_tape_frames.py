"""Blocks of frames: parts of worlds are views of the right frames and columns, whatever the numbers of both."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from warpsim.tape.frames import Block


@pytest.mark.parametrize("lazy", [False, True], ids=["Warp's memory", "NumPy's memory"])
@pytest.mark.parametrize(("frames", "worlds"), [(2, 4), (4, 2), (3, 3), (1, 4)])
def test_a_range_of_worlds_keeps_all_frames(frames, worlds, lazy):
    numbers = np.arange(frames * worlds * 5, dtype=np.float64).reshape(frames, worlds, 5)
    whole = Block.over(numbers, wp.float64) if lazy else Block(wp.array(numbers, device="cpu"))
    for first in range(worlds):
        for last in range(first + 1, worlds + 1):
            part = whole.worlds(range(first, last))
            assert np.array_equal(part.host, numbers[:, first:last])
            assert np.array_equal(part.array.numpy(), numbers[:, first:last])
            part.host[:] = -1.0
            assert (whole.host[:, first:last] == -1.0).all(), "a view, not a copy"
            whole.host[:] = numbers = np.arange(frames * worlds * 5, dtype=np.float64).reshape(frames, worlds, 5)
