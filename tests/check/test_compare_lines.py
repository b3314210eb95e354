"""How two runs are printed side by side."""

from __future__ import annotations

from warpsim.check.records.compare import Comparison


def test_results_stand_in_columns():
    shown = str(Comparison({}, {"loss": ("1", "1"), "mode switches": ("2", "3")}, True))
    assert shown.splitlines()[-2:] == ["  loss           1", "  mode switches  2  →  3"]
