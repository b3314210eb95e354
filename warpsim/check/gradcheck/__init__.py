"""Gradients checked against central differences, with a verdict per input and the guilty stage named."""

from warpsim.check.gradcheck.check import Subject, default_parameters, gradcheck
from warpsim.check.gradcheck.report import Blame, Report, Section
from warpsim.check.gradcheck.simulator_check import check_simulator

__all__ = ["Blame", "Report", "Section", "Subject", "check_simulator", "default_parameters", "gradcheck"]
