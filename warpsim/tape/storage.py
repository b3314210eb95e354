"""Where checkpoints live: on the device, in host memory, or in memory-mapped files."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import warp as wp

from warpsim.core.errors import InputError, OutputError
from warpsim.tape import frames
from warpsim.tape.frames import Packed
from warpsim.tape.program import Field

KINDS = ("device", "host", "disk")

RESIDENT_BYTES = 1_000_000
"""How much of a mapped file may stay in the process's memory before its pages are handed back to the system's cache."""


class Checkpoints:
    """Frames of states: frame 0 the initial state, the last frame the state reached so far, snapshots between."""

    def __init__(self, states: Packed) -> None:
        """Takes the frames; see `make`."""
        self.states = states

    @property
    def nbytes(self) -> int:
        """Bytes of all frames."""
        return self.states.data.nbytes

    def save(self, frame: int, states: Packed, slot: int) -> None:
        """Copies the state in a slot to a frame."""
        self.states.copy_frame(frame, states, slot)

    def load(self, frame: int, states: Packed, slot: int) -> None:
        """Copies a frame to the state in a slot."""
        states.copy_frame(slot, self.states, frame)


class DiskCheckpoints(Checkpoints):
    """Frames in a memory-mapped file, in a temporary directory that is removed when the object is collected."""

    def __init__(self, fields: tuple[Field, ...], frame_count: int, file: Path | None) -> None:
        """Creates the file, or opens it if it is there.

        Args:
            fields: The state.
            frame_count: Number of frames.
            file: A file that stays; None for a temporary one.
        """
        removed: weakref.finalize | None = None
        if file is None:
            folder = tempfile.mkdtemp(prefix="warpsim_checkpoints_")
            removed = weakref.finalize(self, shutil.rmtree, folder, True)
            file = Path(folder) / "states.bin"
        try:
            self._mapped = map_file(file, frame_count * frames.packed_bytes(fields))
        except OutputError:
            if removed is not None:
                removed()
            raise
        self._touched = 0
        super().__init__(Packed(fields, frame_count, mapped_bytes(self._mapped)))

    def save(self, frame: int, states: Packed, slot: int) -> None:
        """Copies the state in a slot to a frame of the file."""
        super().save(frame, states, slot)
        self._relax()

    def load(self, frame: int, states: Packed, slot: int) -> None:
        """Copies a frame of the file to the state in a slot."""
        super().load(frame, states, slot)
        self._relax()

    def _relax(self) -> None:
        """Now and then lets the system take the pages: the data stays in its cache or on disk, not in this process."""
        self._touched += self.states.data.array.shape[1]
        if self._touched > RESIDENT_BYTES // 2 and hasattr(mmap, "MADV_DONTNEED"):
            self._touched = 0
            self._mapped.madvise(mmap.MADV_DONTNEED)


def make(
    kind: str, fields: tuple[Field, ...], frame_count: int, device: wp.Device, file: Path | None = None
) -> Checkpoints:
    """Room for `frame_count` states.

    Args:
        kind: "device", "host" (pinned if the device is a GPU) or "disk".
        fields: The state.
        frame_count: Number of states.
        device: Where the program runs.
        file: For "disk": a file that stays; by default a temporary one.
    """
    if kind == "device":
        return Checkpoints(Packed.allocate(fields, frame_count, device))
    if kind == "host":
        return Checkpoints(Packed.allocate(fields, frame_count, wp.get_device("cpu"), pinned=device.is_cuda))
    if kind == "disk":
        return DiskCheckpoints(fields, frame_count, file)
    raise InputError(f"storage={kind!r}; use one of {', '.join(KINDS)}")


def map_file(path: Path, nbytes: int) -> mmap.mmap:
    """Maps a file of `nbytes`, made (with zeros) or resized if need be, all of it reserved on the disk.

    Writing to a mapped page for which the disk has no room kills the process (SIGBUS), so none may be missing.

    Raises:
        OutputError: There is no room; a file that was not there before is removed.
    """
    is_new = not path.exists()
    try:
        with path.open("w+b" if is_new else "r+b") as file:
            _reserve(file, max(nbytes, 1))
            return mmap.mmap(file.fileno(), max(nbytes, 1))
    except OSError as error:
        if is_new:
            path.unlink(missing_ok=True)
        raise OutputError(
            f"checkpoints need {nbytes / 1e6:.4g} MB in {path.parent}, {_room(path.parent)} "
            f"({error.strerror or error}); make room there, put temporary files on a larger disk (TMPDIR), keep "
            "checkpoints in memory (storage='host'), or give a smaller budget, which takes fewer of them"
        ) from error


def _reserve(file: BinaryIO, nbytes: int) -> None:
    """Gives a file its size with a place on the disk for every byte; what it holds stays."""
    size = os.fstat(file.fileno()).st_size
    if size > nbytes:
        file.truncate(nbytes)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, nbytes)
        return
    file.seek(size)
    while (missing := nbytes - file.tell()) > 0:  # macOS: zeros that are really written
        file.write(bytes(min(missing, 1 << 20)))
    file.flush()
    os.fsync(file.fileno())


def _room(folder: Path) -> str:
    try:
        return f"which has {shutil.disk_usage(folder).free / 1e6:.4g} MB free"
    except OSError:
        return "which cannot be asked for its room"


def mapped_bytes(mapped: mmap.mmap) -> wp.array:
    """A mapped file as an array of bytes, which keeps the mapping alive."""
    return wp.array(np.frombuffer(mapped, dtype=np.uint8), dtype=wp.uint8, device="cpu", copy=False)


def mapped_blocks(folder: Path, prefix: str, fields: Iterable[Field], frame_count: int) -> frames.Blocks:
    """Contiguous blocks of `frame_count` frames in files that stay."""
    found = {}
    for field in fields:
        memory = mapped_bytes(map_file(folder / f"{prefix}_{field.name}.bin", frame_count * field.nbytes))
        array = wp.array(ptr=memory.ptr, shape=(frame_count, *field.shape), dtype=field.dtype, device="cpu")
        array._ref = memory  # as in Warp's own views: keeps the memory alive
        found[field.name] = frames.Block(array)
    return found
