"""Gradients of rollouts of any length in bounded memory, for any step written in Warp kernels."""

from warpsim.tape.arena import Arena
from warpsim.tape.checkpointed import CheckpointedTape
from warpsim.tape.diagnostics import NonFiniteError, SegmentReport
from warpsim.tape.inputs import InputProvider, ResumableProvider
from warpsim.tape.journal import Resumable
from warpsim.tape.knots import KnotInputs
from warpsim.tape.memory import Memory
from warpsim.tape.objective import RunningCost, final_cost
from warpsim.tape.parameters import StaleInputError
from warpsim.tape.program import Arrays, ExplainingProgram, Field, Program, SplittableProgram
from warpsim.tape.run import Gradients, ReleasedError, Run
from warpsim.tape.schedule import AllStarts, FullTape, Plan, Revolve, Schedule, Windows
from warpsim.tape.seeds import EveryStep

__all__ = [
    "AllStarts",
    "Arena",
    "Arrays",
    "CheckpointedTape",
    "EveryStep",
    "ExplainingProgram",
    "Field",
    "FullTape",
    "Gradients",
    "InputProvider",
    "KnotInputs",
    "Memory",
    "NonFiniteError",
    "Plan",
    "Program",
    "ReleasedError",
    "Resumable",
    "ResumableProvider",
    "Revolve",
    "Run",
    "RunningCost",
    "Schedule",
    "SegmentReport",
    "SplittableProgram",
    "StaleInputError",
    "Windows",
    "final_cost",
]
