"""Backward passes that survive being killed: everything needed to go on is on disk after each finished segment.

The checkpoints and the gradients of inputs are mapped files, written in place. The rest (which segment is done, which
checkpoints are valid, the adjoint handed to the next segment, gradients of parameters so far) is one small file that is
replaced atomically. Start the same program again with the same arguments and it goes on where it stopped, with the same
bits as if it had never been interrupted.
"""

from __future__ import annotations

import shutil
import time
import zlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.errors import InputError
from warpsim.core.files import replacing
from warpsim.tape import frames
from warpsim.tape.frames import Packed
from warpsim.tape.part import Part
from warpsim.tape.program import Program
from warpsim.tape.schedule import Plan
from warpsim.tape.sweep import Pullback


@dataclass(frozen=True)
class Resumable:
    """Checkpoints on disk, in files that stay until the backward pass is complete or the run is released.

    Attributes:
        directory: Where the files go; one run at a time.
        seconds: How often to save when all segment starts are kept; with fewer checkpoints, after each segment.
    """

    directory: str | Path
    seconds: float = 5.0

    def folder(self, group: int | None = None) -> Path:
        """Where the files of the run, or of one group of worlds, are; made if need be."""
        found = Path(self.directory) / "warpsim_run"
        if group is not None:
            found /= f"worlds_{group}"
        found.mkdir(parents=True, exist_ok=True)
        return found

    def remove(self) -> None:
        """Deletes all files of the run; arrays mapped from them stay valid until they are dropped."""
        shutil.rmtree(self.folder(), ignore_errors=True)


class Journal:
    """What is saved about one group of worlds."""

    def __init__(self, folder: Path, seconds: float, identity: str) -> None:
        """Opens a journal.

        Args:
            folder: Where its file is or will be.
            seconds: Least time between saves, where the schedule allows.
            identity: Describes the run; a journal of another run is refused.
        """
        self._file = folder / "journal.npz"
        self._seconds = seconds
        self._identity = identity
        self._saved_at = time.monotonic()

    def exists(self) -> bool:
        """Whether the forward pass of a run has been completed here."""
        return self._file.exists()

    def check(self) -> None:
        """Raises if what was saved here belongs to another run."""
        if self.exists():
            self._read().close()

    def begin(self, part: Part) -> None:
        """Saves that the forward pass is complete."""
        self._write(part, {"segment": np.int64(part.plan.segments)})

    def restore_forward(self, part: Part) -> None:
        """Brings a part to where it was last saved, after its forward pass or within its backward pass."""
        with self._read() as saved:
            part.step = part.plan.steps
            for name in ("stored", "frames", "free"):
                setattr(part.snapshots, name, array("q", saved[name].tobytes()))
            part.checksums[:] = saved["checksums"]

    def restore_backward(self, adjoint: Packed, pull: Pullback, sums: Mapping[str, wp.array], seeds: int) -> None:
        """Brings a backward pass to where it was last saved; does nothing if it had not begun.

        Args:
            adjoint: Frame 0 receives the adjoint of the state at the start of the last finished segment.
            pull: Told where to go on.
            sums: By name: what accumulates over segments (gradients of parameters, of knots), for this group of worlds.
            seeds: Checksum of the seeds, which must be those of the interrupted pass.
        """
        with self._read() as saved:
            finished = int(saved["segment"])
            if "adjoint" not in saved.files:
                return
            if int(saved["seeds"]) != seeds:
                raise InputError(f"{self._file} was saved with other seeds; use those, or delete it to begin again")
            adjoint.data.write(0, saved["adjoint"])
            for name, array in sums.items():
                array.assign(saved[f"sum {name}"])
            pull.norms[:] = saved["norms"]
            pull.resume_from = finished - 1

    def commit(
        self, done: int, adjoint: Packed, part: Part, pull: Pullback, sums: Mapping[str, wp.array], seeds: int
    ) -> None:
        """Saves that segment `done` is finished, if it is time to; other arguments as in `restore_backward`."""
        frames_are_reused = part.plan.snapshots < part.plan.segments
        now = time.monotonic()
        if done > 0 and not frames_are_reused and now - self._saved_at < self._seconds:
            return
        self._saved_at = now
        more = {
            "segment": np.int64(done),
            "seeds": np.int64(seeds),
            "norms": pull.norms,
            "adjoint": adjoint.data.read(0),
        }
        self._write(part, more | {f"sum {name}": array.numpy() for name, array in sums.items()})

    def remove(self) -> None:
        """Deletes the journal: the run is complete, or is to begin again."""
        self._file.unlink(missing_ok=True)

    def _write(self, part: Part, more: dict[str, Any]) -> None:
        with replacing(self._file, durable=False) as fresh:  # the mapped files are no safer from a power cut
            np.savez(
                fresh,
                identity=np.str_(self._identity),
                stored=np.array(part.snapshots.stored, dtype=np.int64),
                frames=np.array(part.snapshots.frames, dtype=np.int64),
                free=np.array(part.snapshots.free, dtype=np.int64),
                checksums=part.checksums,
                **more,
            )

    def _read(self) -> Any:
        saved = np.load(self._file)
        if str(saved["identity"]) != self._identity:
            saved.close()
            raise InputError(
                f"{self._file} belongs to another run (other steps, schedule, program, initial state, parameters or "
                "kept frames); choose another directory, or delete it to begin again"
            )
        return saved


def describe(
    program: Program, plan: Plan, initial_state: frames.Blocks, parameters: Mapping[str, int], kept: Iterable[Any]
) -> str:
    """Describes what must be equal for a journal to be continued.

    Args:
        program: The step of one group of worlds.
        plan: How the run is cut.
        initial_state: By field, one frame each.
        parameters: Checksums by name.
        kept: What frames the run keeps.
    """
    fields = [
        (f.name, f.shape, wp.types.type_repr(f.dtype)) for f in (*program.state, *program.inputs, *program.outputs)
    ]
    state = [zlib.crc32(np.ascontiguousarray(initial_state[f.name].read(0)).data) for f in program.state]
    cut = (plan.steps, plan.slots, plan.first, plan.snapshots, plan.window)
    return repr((*cut, fields, state, dict(parameters), *kept))
