"""The reference panel: small cases whose derivatives are known in closed form, ours beside naive autodiff and exact."""

from warpsim.check.panel.cases import CASES
from warpsim.check.panel.table import Case, Line, run_panel

__all__ = ["CASES", "Case", "Line", "run_panel"]
