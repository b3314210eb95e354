"""What a capture of Warp holds on the CPU, as a plain list of calls, and a native loop that makes them.

A call is a compiled kernel with its launch bounds and packed arguments, or a fill or a copy of memory. Everything a
call needs is kept as 8-byte words, so that calls can be compared, and parts of them replaced, without knowing what the
words mean.
"""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import warp as wp

from warpsim.core import warp_internals
from warpsim.core.kernel_lock import KERNELS
from warpsim.tape.crew import Crew

_FORWARD, _BACKWARD, _FILL, _COPY = range(4)
_WORD = 8
_ALIGNMENT = 64
"""Bytes; the words of a call start on a cache line."""

# Every member of a crew walks through the whole table and makes the calls that are its own; everyone waits for everyone
# where a division begins or ends. A member who waits long hands its core on, or more members than cores would wait for
# one another's time slices.
_RUN = """
#if !defined(__CUDA_ARCH__)
    const long long* head = reinterpret_cast<const long long*>(table.data);
    long long turn = head[0];
    const long long crew = head[3];
    long long* meeting = reinterpret_cast<long long*>(head[4]);  // arrivals, generation
    auto meet = [&]() {
        const long long generation = __atomic_load_n(meeting + 8, __ATOMIC_ACQUIRE);
        if (__atomic_add_fetch(meeting, 1, __ATOMIC_ACQ_REL) == crew) {
            __atomic_store_n(meeting, 0, __ATOMIC_RELAXED);
            __atomic_add_fetch(meeting + 8, 1, __ATOMIC_ACQ_REL);
            return;
        }
        for (int spins = 0; __atomic_load_n(meeting + 8, __ATOMIC_ACQUIRE) == generation; ++spins)
            if (spins >= 20000) reinterpret_cast<void (*)()>(head[5])();
    };
    auto make = [&](const long long* call) {
        long long* words = reinterpret_cast<long long*>(call[2]);
        const long long* own = reinterpret_cast<const long long*>(call[5]);
        for (const long long* end = own + 3 * call[6]; own != end; own += 3) words[own[0]] = own[1] + turn * own[2];
        void* bounds = reinterpret_cast<void*>(call[3]);
        void* adjoints = reinterpret_cast<void*>(call[4]);
        switch (call[0] & 3) {
        case 0: reinterpret_cast<void (*)(void*, void*)>(call[1])(bounds, words); break;
        case 1: reinterpret_cast<void (*)(void*, void*, void*)>(call[1])(bounds, words, adjoints); break;
        case 2: memset(reinterpret_cast<void*>(words[0]), static_cast<int>(words[1]), words[2]); break;
        case 3: memcpy(reinterpret_cast<void*>(words[0]), reinterpret_cast<void*>(words[1]), words[2]); break;
        }
    };
    const long long* const last = head + 8 * (table.shape[0] - 1);
    for (long long left = head[2]; left > 0; --left, turn += head[1]) {
        if (crew == 1) {
            for (const long long* call = head; call != last;) make(call += 8);
            continue;
        }
        long long division = 0;
        for (const long long* call = head; call != last;) {
            call += 8;
            if (call[7] != division) {
                meet();
                division = call[7];
            }
            if (call[0] >> 2 == member) make(call);
        }
        if (division) meet();
    }
#endif
"""


@wp.func_native(_RUN)
def _run(table: wp.array2d(dtype=wp.int64), member: int):
    """Makes the calls of one member of the crew, of as many turns as the table's first row says, in order."""


@wp.kernel(enable_backward=False)
def _replay_kernel(table: wp.array2d(dtype=wp.int64), member: int):
    _run(table, member)


@dataclass(frozen=True, eq=False)
class Call:
    """One call.

    Attributes:
        form: What it does, all but the words: kind, function, launch bounds, number of words.
        words: Arguments of a launch (of an adjoint, then as many adjoint arguments), or pointers and size.
        split: Where the adjoint arguments start among the words.
        division: Launches of one division share its number and may be made at the same time; 0: none.
    """

    form: tuple[int, int, bytes, int]
    words: np.ndarray
    split: int = 0
    division: int = 0


_divisions = count(1)
_division: ContextVar[int] = ContextVar("division", default=0)


@contextmanager
def division() -> Iterator[None]:
    """Launches captured within the block may be made at the same time: none of them reads what another one writes."""
    token = _division.set(next(_divisions))
    try:
        yield
    finally:
        _division.reset(token)


class Recording:
    """The calls of one capture, in order, and all that must stay alive for them to be made.

    Attributes:
        calls: What was recorded so far.
    """

    def __init__(self) -> None:
        """Nothing is recorded yet."""
        self.calls: list[Call] = []
        self._alive: dict[int, Any] = {}  # owners of the memory that the arguments point to
        self._modules: set[Any] = set()  # compiled kernels
        self._layouts: dict[tuple[type, ...], type[ctypes.Structure]] = {}

    def capture(self, device: wp.Device, work: Callable[[], None]) -> bool:
        """Records what `work` launches without running it; whether everything it does was understood.

        Warp's own recording is the judge: an operation that is not a launch, and neither a fill nor a copy, which it
        is not shown (a sort, a scan, a conditional), makes its count differ from ours. A Warp whose captures may not be
        watched records alone, and nothing is understood.
        """
        if not warp_internals.is_tried():
            with KERNELS, wp.ScopedCapture(device=device):
                work()
            return False
        with KERNELS, wp.ScopedCapture(device=device) as watched, self._watching(device):
            work()
        self._modules |= watched.graph.module_execs
        launches = sum(call.form[0] in (_FORWARD, _BACKWARD) for call in self.calls)
        return launches == watched.graph._apic_capture.operation_count

    @property
    def alive(self) -> tuple[Any, ...]:
        """Whoever makes the calls must hold this."""
        return (*self._alive.values(), *self._modules)

    @contextmanager
    def _watching(self, device: wp.Device) -> Iterator[None]:
        """Sees all launches, `zero_` and `wp.copy`; Warp's active capture sees the launches alone.

        To know a fill or a copy, Warp would copy the whole memory that holds the array: all intermediates of all slots.
        """
        runtime = warp_internals.runtime()
        assert runtime is not None  # `capture` has asked
        recording, core = runtime._apic_capture, runtime.core
        memset, memcpy = device.memset, core.wp_memcpy_h2h
        nothing = warp_internals.APICLaunchInfo()

        def launch(kernel, module_exec, hooks, params, fwd_args, adjoint, adj_args=None):
            self._launch(hooks.backward if adjoint else hooks.forward, params, adjoint)
            self._keep(fwd_args)
            self._keep([a for a in adj_args or () if isinstance(a, wp.array)])
            return nothing

        def fill(pointer: int, value: int, nbytes: int) -> bool:
            self._move(_FILL, pointer, value, nbytes)
            return True

        def copy(target: int, source: int, nbytes: int) -> bool:
            if nbytes:
                self._move(_COPY, target, source, nbytes)
            return True

        recording.build_launch_info = launch
        recording.track_array = lambda array: (-1, 0)  # as of an array that needs no tracking
        device.memset, core.wp_memcpy_h2h = fill, copy
        try:
            yield
        finally:
            del recording.build_launch_info, recording.track_array
            device.memset, core.wp_memcpy_h2h = memset, memcpy

    def _launch(self, function: Any, params: list[Any], adjoint: bool) -> None:
        """One launch: `params` are the bounds, the arguments, and for an adjoint as many adjoint arguments."""
        half = (len(params) - 1) // 2
        groups = [params[1 : 1 + half], params[1 + half :]] if adjoint else [params[1:]]
        packets = [self._packed(group) for group in groups]
        words = np.frombuffer(b"".join(packets), np.int64)
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        form = (_BACKWARD if adjoint else _FORWARD, address, bytes(params[0]), words.size)
        self.calls.append(Call(form, words, len(packets[0]) // _WORD, _division.get()))

    def _move(self, kind: int, *words: int) -> None:
        self.calls.append(Call((kind, 0, b"", len(words)), np.array(words, np.int64)))

    def _packed(self, values: list[Any]) -> bytes:
        """The arguments as the C structure a kernel takes, in whole words."""
        types = tuple(map(type, values))
        layout = self._layouts.get(types)
        if layout is None:
            fields = [(f"argument_{i}", kind) for i, kind in enumerate(types)]
            layout = self._layouts[types] = type("Arguments", (ctypes.Structure,), {"_fields_": fields})
        packet = bytes(layout(*values))
        return packet.ljust(-(-len(packet) // _WORD) * _WORD, b"\0")

    def _keep(self, arguments: list[Any]) -> None:
        for argument in arguments:
            owner = argument
            while getattr(owner, "_ref", None) is not None:
                owner = owner._ref
            self._alive[id(owner)] = owner


class CallTable:
    """Turns of the same calls, made over and over; from turn to turn some words of a call move by a fixed step.

    Those words are written into the call's place before it is made. So what all turns of a call need is there once,
    however many there are: thousands of bytes of arrays and structs, which stay in the nearest cache. For the same
    reason two threads may not use one table at a time, as the arrays it works on demand anyway.
    """

    def __init__(
        self,
        device: wp.Device,
        calls: list[Call],
        steps: list[np.ndarray],
        turns: range,
        alive: Any,
        crew: Crew | None = None,
    ) -> None:
        """Lays the table out: a row that says which turns to make, then a row for each call.

        Args:
            device: The CPU.
            calls: The calls of turn 0.
            steps: For each call: what is added to its words from turn to turn.
            turns: Turns in the order in which they are made.
            alive: What must stay alive.
            crew: Threads that share the calls of divisions; None: the caller alone.
        """
        divided = any(call.division for call in calls)
        self._crew = crew if crew is not None and divided else None
        self._turns = turns
        self._forms, self._steps = [call.form for call in calls], steps
        self._table = _aligned(np.zeros((1 + len(calls), 8), np.int64))
        meeting = _aligned(np.zeros(16, np.int64))  # two cache lines
        self._table[0, 1] = turns.step
        self._table[0, 3:6] = 1 if self._crew is None else self._crew.size, meeting.ctypes.data, _yield_function()
        kept: list[np.ndarray] = [meeting]
        members = _members(calls, int(self._table[0, 3]))
        for row, call, step, member in zip(self._table[1:], calls, steps, members, strict=True):
            places = np.flatnonzero(step)
            own = _aligned(np.stack([places, call.words[places], step[places]], axis=1))
            words, bounds = _aligned(call.words), _aligned(np.frombuffer(call.form[2], np.uint8))
            start = words.ctypes.data
            row[:7] = [
                call.form[0] + 4 * member,
                call.form[1],
                start,
                bounds.ctypes.data,
                start + _WORD * call.split,
                own.ctypes.data,
                places.size,
            ]
            row[7] = call.division
            kept += [words, bounds, own]
        commands = [self._command(device, member) for member in range(int(self._table[0, 3]))]
        self._members = [
            (command.hooks.forward, ctypes.byref(command.bounds), _arguments(command.params)) for command in commands
        ]
        self._alive = (alive, kept, commands)

    def _command(self, device: wp.Device, member: int) -> wp.Launch:
        """The replay by one member of the crew."""
        command = wp.launch(
            _replay_kernel,
            dim=1,
            inputs=[wp.empty((1, 8), dtype=wp.int64, device=device), member],
            device=device,
            record_cmd=True,
            record_tape=False,
        )
        command.params[1].data, command.params[1].shape[0] = self._table.ctypes.data, len(self._table)
        return command

    def strides_for(self, calls: list[Call], turns: range) -> list[np.ndarray] | None:
        """What is added from turn to turn, if these are the calls of a turn 0 that does the same over other memory."""
        alike = turns == self._turns and [call.form for call in calls] == self._forms
        return self._steps if alike else None

    def prepare(self, first: int, count: int) -> None:
        """Nothing to prepare: the table holds all turns."""

    def run(self, first: int, count: int) -> None:
        """Makes turns `first` … `first` + `count` - 1 in the table's order.

        Outside the interpreter lock and without `KERNELS`: other threads go on meanwhile.
        """
        if first < 0 or count < 0 or first + count > len(self._turns):
            raise IndexError(f"turns {first} to {first + count - 1} of {len(self._turns)}")
        self._table[0, 0] = first if self._turns.step > 0 else first + count - 1
        self._table[0, 2] = count
        if self._crew is None:
            KERNELS.without(self._make, 0)
        else:
            KERNELS.without(self._crew.run, self._make)

    def _make(self, member: int) -> None:
        function, bounds, arguments = self._members[member]
        function(bounds, arguments)


def _members(calls: list[Call], crew: int) -> list[int]:
    """Who makes each call: member 0 what is not divided; of a division each an equal run of neighboring ranges.

    Neighbors share the memory at their border, and equal shares of the next division read what these have written: so
    little of it has to move from one core's cache to another's.
    """
    sizes = Counter(call.division for call in calls if call.division)
    seen: Counter[int] = Counter()
    members = []
    for call in calls:
        members.append(seen[call.division] * crew // sizes[call.division] if call.division else 0)
        seen[call.division] += 1
    return members


def _yield_function() -> int:
    """Address of the system's function that hands the rest of a thread's time slice on."""
    library = ctypes.CDLL("kernel32") if os.name == "nt" else ctypes.CDLL(None)
    function = library.SwitchToThread if os.name == "nt" else library.sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _arguments(params: list[Any]) -> Any:
    """The arguments of a launch, without its bounds, as the C structure a kernel takes."""
    values = params[1:]
    fields = [(f"argument_{i}", type(value)) for i, value in enumerate(values)]
    return ctypes.byref(type("Arguments", (ctypes.Structure,), {"_fields_": fields})(*values))


def _aligned(content: np.ndarray) -> np.ndarray:
    """A copy of the array that starts on a cache line."""
    memory = np.empty(content.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    aligned = memory[start : start + content.nbytes].view(content.dtype).reshape(content.shape)
    aligned[...] = content
    return aligned
