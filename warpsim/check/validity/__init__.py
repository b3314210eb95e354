"""How far along a rollout its gradient can be trusted: switches, growth, chaos, solver, penetration, energy; advice."""

from warpsim.check.validity.measure import Validity, measure_validity
from warpsim.check.validity.plot import plot_validity

__all__ = ["Validity", "measure_validity", "plot_validity"]
