"""Where checkpoints live: on the device, in host memory, or in memory-mapped files."""

from __future__ import annotations

import mmap
import shutil
import tempfile
import weakref
from pathlib import Path

import numpy as np
import warp as wp

from warpsim.errors import InputError
from warpsim.tape import rows
from warpsim.tape.program import Field

KINDS = ("device", "host", "disk")

_RESIDENT_BYTES = 4_000_000
"""How much of a mapped file may stay in the process's memory before its pages are handed back to the system's cache."""


class Checkpoints:
    """Rows of states. Row 0 is the initial state, the last row the state reached so far, those between are snapshots."""

    def __init__(self, fields: tuple[Field, ...], blocks: rows.Blocks) -> None:
        """Takes the blocks that hold the rows; see `make`."""
        self.fields = fields
        self.blocks = blocks

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(block.nbytes for block in self.blocks.values())

    def worlds(self, first: int, last: int) -> rows.Blocks:
        """The blocks restricted to a range of worlds."""
        return {name: block.worlds(first, last) for name, block in self.blocks.items()}

    def relax(self, written: int) -> None:
        """Called after each `written` bytes were stored or loaded; does nothing in memory."""

    def close(self) -> None:
        """Gives the memory back."""
        self.blocks = {}


class DiskCheckpoints(Checkpoints):
    """Rows in memory-mapped files, one per field, removed on `close` or when the object is collected."""

    def __init__(self, fields: tuple[Field, ...], row_count: int, directory: Path | None) -> None:
        """Creates the files, or opens those that are there.

        Args:
            fields: The state.
            row_count: Number of rows.
            directory: Where the files go and stay; None for a temporary directory that is removed.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="warpsim_checkpoints_")) if directory is None else directory
        self._folder.mkdir(parents=True, exist_ok=True)
        self._temporary = directory is None
        self._maps = {f.name: map_file(self._folder / f"{f.name}.bin", row_count * f.nbytes) for f in fields}
        super().__init__(fields, {f.name: mapped_block(self._maps[f.name], f, row_count) for f in fields})
        self._touched = 0
        if self._temporary:
            self._remove = weakref.finalize(self, shutil.rmtree, self._folder, True)

    def relax(self, written: int) -> None:
        """Lets the system take back the pages: the data stays in its cache or on disk, not in this process."""
        self._touched += written
        if self._touched > _RESIDENT_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            self._touched = 0
            for mapped in self._maps.values():
                mapped.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Unmaps the files, and removes them if they are temporary."""
        super().close()
        self._maps = {}
        if self._temporary:
            self._remove()


def make(
    kind: str, fields: tuple[Field, ...], row_count: int, device: wp.Device, directory: Path | None = None
) -> Checkpoints:
    """Room for `row_count` states.

    Args:
        kind: "device", "host" (pinned if the device is a GPU) or "disk".
        fields: The state.
        row_count: Number of states.
        device: Where the program runs.
        directory: For "disk": where the files go; by default a temporary directory that is removed.
    """
    if kind == "device":
        return Checkpoints(fields, rows.allocate(fields, row_count, device))
    if kind == "host":
        return Checkpoints(fields, rows.allocate(fields, row_count, wp.get_device("cpu"), pinned=device.is_cuda))
    if kind == "disk":
        return DiskCheckpoints(fields, row_count, directory)
    raise InputError(f"storage={kind!r}; use one of {', '.join(KINDS)}")


def map_file(path: Path, nbytes: int) -> mmap.mmap:
    """Maps a file of `nbytes`, made (with zeros) or resized if need be."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.truncate(max(nbytes, 1))
        return mmap.mmap(file.fileno(), max(nbytes, 1))


def mapped_block(mapped: mmap.mmap, field: Field, row_count: int) -> rows.Block:
    """A block over a mapped file; it keeps the mapping alive."""
    raw = np.frombuffer(mapped, dtype=np.uint8)
    array = wp.array(ptr=raw.ctypes.data, shape=(row_count, *field.shape), dtype=field.dtype, device="cpu")
    array._ref = raw  # as in Warp's own views of foreign memory
    return rows.Block(array)
