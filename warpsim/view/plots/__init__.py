"""Curves of a run as figures by matplotlib, an extra: `pip install warpsim[plot]`."""
