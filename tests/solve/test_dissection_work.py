"""The work by which orders of elimination are compared."""

from __future__ import annotations

import pytest

from warpsim.solve.block_ldl.dissection import _estimate


def test_work_of_a_front():
    """Pivots cubed over three, for their own block; the rest for the rows below: 8/3 + 4·3 + 2·9."""
    assert _estimate(2.0, 3.0) == pytest.approx(8 / 3 + 12 + 18, rel=1e-15)
