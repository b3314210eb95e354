"""Gradients of rollouts of any length in bounded memory, for any step written in Warp kernels."""

from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field, Program, SplittableProgram

__all__ = ["Arena", "Arrays", "Field", "Program", "SplittableProgram"]
