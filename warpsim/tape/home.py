"""Where the checkpoints and results of a tape's runs live: in memory, in temporary files, or in files that stay."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import warp as wp

from warpsim.core.errors import InputError
from warpsim.tape import frames, storage
from warpsim.tape.journal import Journal, Resumable, describe
from warpsim.tape.part import Part
from warpsim.tape.program import Field, Program
from warpsim.tape.schedule import Plan


class Home:
    """Checkpoints on the device, in host memory or in temporary files; results on the device.

    Attributes:
        kind: One of `storage.KINDS`.
    """

    def __init__(self, kind: str, device: wp.Device) -> None:
        """Allocates nothing yet."""
        self.kind = kind
        self._device = device
        self._spare: list[list[storage.Checkpoints]] = []

    def checkpoints(self, programs: Iterable[Program], count: int) -> list[storage.Checkpoints]:
        """Room for `count` states of each group of worlds; that of a released run is used again."""
        if self._spare:
            return self._spare.pop()
        return [storage.make(self.kind, program.state, count, self._device) for program in programs]

    def take_back(self, checkpoints: list[storage.Checkpoints]) -> None:
        """Receives the room of a released run."""
        self._spare.append(checkpoints)

    def abandon(self, checkpoints: list[storage.Checkpoints]) -> None:
        """Receives the room of a run that was dropped without being released."""
        self.take_back(checkpoints)

    def blocks(self, prefix: str, fields: Iterable[Field], count: int) -> frames.Blocks:
        """Arrays of `count` frames that are handed to the caller."""
        return frames.allocate(fields, count, self._device)

    def check_own_array(self, what: str) -> None:
        """Raises if results may not go to arrays of the caller's."""

    def journals(
        self,
        programs: Iterable[Program],
        plan: Plan,
        initial_states: Iterable[frames.Blocks],
        parameters: Mapping[str, int],
        kept: Iterable[Any],
    ) -> list[Journal]:
        """What saves the backward pass of each group of worlds: nothing."""
        return []

    def restore(self, journals: list[Journal], parts: list[Part]) -> bool:
        """Brings the parts to where they were saved; whether they were."""
        return False


class ResumableHome(Home):
    """Everything in files that stay until the run is released, so that it can go on after being killed."""

    def __init__(self, resumable: Resumable, device: wp.Device) -> None:
        """Makes no files yet."""
        super().__init__("disk", device)
        self._files = resumable
        self._open: list[weakref.ref[storage.Checkpoints]] = []

    def checkpoints(self, programs: Iterable[Program], count: int) -> list[storage.Checkpoints]:
        """Files for one run at a time; those of a killed one are found again."""
        if any(store() is not None for store in self._open):
            raise InputError(
                f"{self._files.directory} holds one run at a time; finish or release the open one, or use another tape "
                "and directory"
            )
        made = [
            storage.make(self.kind, program.state, count, self._device, self._files.folder(i) / "states.bin")
            for i, program in enumerate(programs)
        ]
        self._open = [weakref.ref(store) for store in made]
        return made

    def take_back(self, checkpoints: list[storage.Checkpoints]) -> None:
        """Deletes the files."""
        self._open = []
        self._files.remove()

    def abandon(self, checkpoints: list[storage.Checkpoints]) -> None:
        """Leaves the files: an interrupted run can be resumed."""
        self._open = []

    def blocks(self, prefix: str, fields: Iterable[Field], count: int) -> frames.Blocks:
        """Arrays mapped from files."""
        return storage.mapped_blocks(self._files.folder(), prefix, fields, count)

    def check_own_array(self, what: str) -> None:
        """An array of the caller's would be lost."""
        raise InputError(f"a resumable run keeps its {what} in its own files; do not give arrays for them")

    def journals(
        self,
        programs: Iterable[Program],
        plan: Plan,
        initial_states: Iterable[frames.Blocks],
        parameters: Mapping[str, int],
        kept: Iterable[Any],
    ) -> list[Journal]:
        """Opens the journals, and raises before any file is touched if they belong to another run."""
        found = []
        for i, (program, state) in enumerate(zip(programs, initial_states, strict=True)):
            identity = describe(program, plan, state, parameters, kept)
            found.append(Journal(self._files.folder(i), self._files.seconds, identity))
        for journal in found:
            journal.check()
        return found

    def restore(self, journals: list[Journal], parts: list[Part]) -> bool:
        """Brings the parts to where they were saved; whether they were."""
        if all(journal.exists() for journal in journals):
            for journal, part in zip(journals, parts, strict=True):
                journal.restore_forward(part)
            return True
        for journal in journals:
            journal.remove()
        return False


def make(kind: str | Resumable, device: wp.Device) -> Home:
    """The home a caller asked for."""
    return ResumableHome(kind, device) if isinstance(kind, Resumable) else Home(kind, device)
