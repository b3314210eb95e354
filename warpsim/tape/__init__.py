"""Gradients of rollouts of any length in bounded memory, for any step written in Warp kernels.

Public names are loaded on first use: what only describes a step (`Field`) does not load the tape's kernels.
"""

from typing import TYPE_CHECKING

from warpsim.core.registry import on_first_use

if TYPE_CHECKING:
    from warpsim.tape.arena import Arena as Arena
    from warpsim.tape.checkpointed import CheckpointedTape as CheckpointedTape
    from warpsim.tape.diagnostics import NonFiniteError as NonFiniteError
    from warpsim.tape.diagnostics import SegmentReport as SegmentReport
    from warpsim.tape.inputs import InputProvider as InputProvider
    from warpsim.tape.inputs import ResumableProvider as ResumableProvider
    from warpsim.tape.journal import Resumable as Resumable
    from warpsim.tape.knots import KnotInputs as KnotInputs
    from warpsim.tape.memory import Memory as Memory
    from warpsim.tape.objective import RunningCost as RunningCost
    from warpsim.tape.objective import final_cost as final_cost
    from warpsim.tape.parameters import StaleInputError as StaleInputError
    from warpsim.tape.program import Arrays as Arrays
    from warpsim.tape.program import ExplainingProgram as ExplainingProgram
    from warpsim.tape.program import Field as Field
    from warpsim.tape.program import Program as Program
    from warpsim.tape.program import SplittableProgram as SplittableProgram
    from warpsim.tape.run import Gradients as Gradients
    from warpsim.tape.run import ReleasedError as ReleasedError
    from warpsim.tape.run import Run as Run
    from warpsim.tape.schedule import AllStarts as AllStarts
    from warpsim.tape.schedule import FullTape as FullTape
    from warpsim.tape.schedule import Plan as Plan
    from warpsim.tape.schedule import Revolve as Revolve
    from warpsim.tape.schedule import Schedule as Schedule
    from warpsim.tape.schedule import Windows as Windows
    from warpsim.tape.seeds import EveryStep as EveryStep

_PUBLIC = {
    "Arena": "warpsim.tape.arena",
    "CheckpointedTape": "warpsim.tape.checkpointed",
    "NonFiniteError": "warpsim.tape.diagnostics",
    "SegmentReport": "warpsim.tape.diagnostics",
    "InputProvider": "warpsim.tape.inputs",
    "ResumableProvider": "warpsim.tape.inputs",
    "Resumable": "warpsim.tape.journal",
    "KnotInputs": "warpsim.tape.knots",
    "Memory": "warpsim.tape.memory",
    "RunningCost": "warpsim.tape.objective",
    "final_cost": "warpsim.tape.objective",
    "StaleInputError": "warpsim.tape.parameters",
    "Arrays": "warpsim.tape.program",
    "ExplainingProgram": "warpsim.tape.program",
    "Field": "warpsim.tape.program",
    "Program": "warpsim.tape.program",
    "SplittableProgram": "warpsim.tape.program",
    "Gradients": "warpsim.tape.run",
    "ReleasedError": "warpsim.tape.run",
    "Run": "warpsim.tape.run",
    "AllStarts": "warpsim.tape.schedule",
    "FullTape": "warpsim.tape.schedule",
    "Plan": "warpsim.tape.schedule",
    "Revolve": "warpsim.tape.schedule",
    "Schedule": "warpsim.tape.schedule",
    "Windows": "warpsim.tape.schedule",
    "EveryStep": "warpsim.tape.seeds",
}
"""Public name → module that defines it."""

__all__ = sorted(_PUBLIC)

__getattr__, __dir__ = on_first_use(__name__, globals(), _PUBLIC)
