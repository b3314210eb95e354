"""How far the constraint solver goes: to the optimum, whatever cap a file sets on it, unless the cap itself is wanted.

Files cap the solver for speed (MJX models: one iteration). A step that stops at the cap is not at the optimum of its
contact problem, and the adjoint, which is the optimum's, is then that of another step: wrong without a sign of it. So
caps are raised, forward and backward alike, and the ledger says so. A cap that is kept makes a simulation forward only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from warpsim.core.errors import InputError
from warpsim.scene.description import SOLVER_STOPS, Options, Scene
from warpsim.scene.ledger import LedgerEntry

MIN_ITERATIONS = 500
"""A smaller cap counts as this one. A converged step seldom takes ten; impacts of bodies that lie deep in one another
have taken more than a hundred."""
USUAL_ITERATIONS = 100
"""MuJoCo's default: a file that says so, or more, has not capped the solver."""
MAX_TOLERANCE = 1e-8
"""A larger tolerance counts as this one, MuJoCo's default: Newton's last step leaves far less."""

_KEEP = 'Simulator(…, iterations="authored") keeps it, forward only'


class SolverLimits(NamedTuple):
    """When the solver stops.

    Attributes:
        iterations: At most so many.
        tolerance: Norm of the gradient over the sum of the mass matrix's diagonal at which it has converged.
    """

    iterations: int
    tolerance: float


def solver_limits(options: Options) -> SolverLimits:
    """The limits that steps run with."""
    authored = SolverLimits(options.solver_iterations, options.solver_tolerance)
    if options.solver_stop == "authored":
        return authored
    return SolverLimits(max(authored.iterations, MIN_ITERATIONS), min(authored.tolerance, MAX_TOLERANCE))


def raised_caps(options: Options) -> Iterator[tuple[str, str]]:
    """The fields whose authored value is not what steps run with, and how a ledger puts it."""
    limits = solver_limits(options)
    if options.solver_iterations < USUAL_ITERATIONS and limits.iterations != options.solver_iterations:
        text = f"{options.solver_iterations}: raised to {limits.iterations}, so that steps converge; {_KEEP}"
        yield "solver_iterations", text
    if limits.tolerance != options.solver_tolerance:
        text = f"{options.solver_tolerance:g}: lowered to {limits.tolerance:g}, so that steps converge; {_KEEP}"
        yield "solver_tolerance", text


def with_stop(scene: Scene, stop: str | None) -> Scene:
    """The scene with caps raised or kept, and a ledger that says which; the scene given is not changed.

    Args:
        scene: As read or made.
        stop: One of `SOLVER_STOPS`; None: the scene's own choice.
    """
    if stop is not None and stop not in SOLVER_STOPS:
        raise InputError(f"iterations={stop!r}; use one of {', '.join(map(repr, SOLVER_STOPS))}, or None")
    options = scene.options if stop is None else replace(scene.options, solver_stop=stop)
    caps = dict(raised_caps(replace(options, solver_stop="converged")))
    if options.solver_stop == "authored":
        caps = dict.fromkeys(caps, "kept as authored: steps may stop before they converge, so no gradients")
    if not caps and options is scene.options:
        return scene
    entries = {_place(scene, field): text for field, text in caps.items()}
    others = [entry for entry in scene.ledger if (entry.path, entry.attribute) not in entries]
    noted = [LedgerEntry(path, attribute, "used", text) for (path, attribute), text in entries.items()]
    return replace(scene, options=options, ledger=[*others, *noted])


def _place(scene: Scene, field: str) -> tuple[str, str]:
    """Path and attribute under which the ledger knows an option."""
    return scene.option_places.get(field, ("option", field.removeprefix("solver_")))
