"""Captured work: a sequence of launches recorded once and replayed for ever.

On CUDA this is Warp's own graph. On the CPU Warp's replay looks every kernel up by name and patches every pointer of
every argument again, about 0.3 µs a launch, a quarter of a humanoid's whole step; and its recording walks all arrays of
all structs, a millisecond a launch. So on the CPU a capture of Warp is watched while it records, and what it was handed
is kept as a plain list of calls: function, launch bounds, packed arguments. One native kernel then runs down that list,
at the cost of the calls.

Warp's recording stays the judge: if it holds an operation that was not seen here (a sort, a scan, a conditional), the
work is captured again and replayed by Warp alone. The bits are the same in every case, since the same compiled kernels
run on the same arguments in the same order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import warp as wp

# Warp has no public way to watch a capture; `tests/test_tape_graph.py` fails if these names change their meaning.
from warp._src import context as _warp
from warp._src.apic.types import APICLaunchInfo

Replay = Callable[[], None]

_FORWARD, _BACKWARD, _FILL, _COPY = range(4)
_WORDS = 5
"""Integers of one call: kind, function, and three arguments."""
_ALIGNMENT = 64
"""Bytes; arguments of one launch start on a cache line."""

_RUN = """
#if !defined(__CUDA_ARCH__)
    const long long* call = reinterpret_cast<const long long*>(calls.data);
    for (int i = 0; i < calls.shape[0]; ++i, call += 5) {
        void* a = reinterpret_cast<void*>(call[2]);
        void* b = reinterpret_cast<void*>(call[3]);
        void* c = reinterpret_cast<void*>(call[4]);
        switch (call[0]) {
        case 0: reinterpret_cast<void (*)(void*, void*)>(call[1])(a, b); break;
        case 1: reinterpret_cast<void (*)(void*, void*, void*)>(call[1])(a, b, c); break;
        case 2: memset(a, static_cast<int>(call[3]), static_cast<size_t>(call[4])); break;
        case 3: memcpy(a, b, static_cast<size_t>(call[4])); break;
        }
    }
#endif
"""


@wp.func_native(_RUN)
def _run(calls: wp.array2d(dtype=wp.int64)):
    """Makes all calls, in order."""


@wp.kernel(enable_backward=False)
def _replay_kernel(calls: wp.array2d(dtype=wp.int64)):
    _run(calls)


def capture(device: wp.Device, work: Callable[[], None]) -> Replay:
    """Records what `work` launches, without running it, and returns the act of running it.

    Args:
        device: Where `work` launches.
        work: Launches kernels, copies and clears arrays; called once, or twice where the CPU list does not suffice.
    """
    if device.is_cpu:
        calls = _Calls()
        with wp.ScopedCapture(device=device) as watched, calls.watching(device):
            work()
        if calls.count == watched.graph._apic_capture.operation_count:
            return calls.replay(device, watched.graph.module_execs)
    with wp.ScopedCapture(device=device) as captured:
        work()
    return partial(wp.capture_launch, captured.graph)


class _Calls:
    """The list of calls as it grows; `count` of them so far."""

    def __init__(self) -> None:
        self._table: list[tuple[int, ...]] = []
        self._packets = bytearray()  # launch bounds and arguments of all launches, each distinct one once
        self._places: dict[bytes, int] = {}
        self._offsets: list[tuple[int, int]] = []  # places of the table that hold an offset into the packets
        self._alive: dict[int, Any] = {}  # owners of the memory that the arguments point to
        self._layouts: dict[tuple[type, ...], type[ctypes.Structure]] = {}

    @property
    def count(self) -> int:
        """Calls recorded so far."""
        return len(self._table)

    @contextmanager
    def watching(self, device: wp.Device) -> Iterator[None]:
        """Sees everything that Warp's active capture records of launches, `zero_` and `wp.copy`."""
        runtime = _warp.runtime
        recording, core = runtime._apic_capture, runtime.core
        memset, memcpy = device.memset, core.wp_memcpy_h2h
        nothing = APICLaunchInfo()

        def launch(kernel, module_exec, hooks, params, fwd_args, adjoint, adj_args=None):
            self._launch(hooks.backward if adjoint else hooks.forward, params, adjoint)
            self._keep(fwd_args)
            self._keep([a for a in adj_args or () if isinstance(a, wp.array)])
            return nothing

        def fill(pointer: int, value: int, nbytes: int) -> bool:
            self._table.append((_FILL, 0, pointer, value, nbytes))
            return memset(pointer, value, nbytes)

        def copy(target: int, source: int, nbytes: int) -> bool:
            if nbytes:  # Warp records no empty copies
                self._table.append((_COPY, 0, target, source, nbytes))
            return memcpy(target, source, nbytes)

        recording.build_launch_info = launch
        device.memset, core.wp_memcpy_h2h = fill, copy
        try:
            yield
        finally:
            del recording.build_launch_info
            device.memset, core.wp_memcpy_h2h = memset, memcpy

    def replay(self, device: wp.Device, modules: set[Any]) -> Replay:
        """The act of making all calls.

        Args:
            device: The CPU.
            modules: Compiled kernels that must stay loaded.
        """
        if not self._table:
            return _nothing
        packets = np.empty(len(self._packets) + _ALIGNMENT, np.uint8)
        start = -packets.ctypes.data % _ALIGNMENT
        packets[start : start + len(self._packets)] = np.frombuffer(self._packets, np.uint8)
        table = np.array(self._table, np.int64)
        if self._offsets:
            rows, columns = np.array(self._offsets).T
            table[rows, columns] += packets.ctypes.data + start
        calls = wp.array(table, dtype=wp.int64, device=device)
        command = wp.launch(_replay_kernel, dim=1, inputs=[calls], device=device, record_cmd=True, record_tape=False)
        arguments = ctypes.create_string_buffer(self._packed(command.params[1:]))
        alive = (command, calls, packets, arguments, modules, tuple(self._alive.values()))
        return partial(_make, command.hooks.forward, ctypes.byref(command.bounds), ctypes.byref(arguments), alive)

    def _launch(self, function: Any, params: list[Any], adjoint: bool) -> None:
        """One launch: `params` are the bounds, the arguments, and for an adjoint as many adjoint arguments."""
        half = (len(params) - 1) // 2
        groups = [params[1 : 1 + half], params[1 + half :]] if adjoint else [params[1:]]
        offsets = [self._append(bytes(params[0])), *(self._append(self._packed(group)) for group in groups)]
        row = len(self._table)
        self._offsets += [(row, 2 + i) for i in range(len(offsets))]
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        self._table.append((_BACKWARD if adjoint else _FORWARD, address, *offsets, *[0] * (3 - len(offsets))))

    def _append(self, packet: bytes) -> int:
        """Where a packet starts; steps that share their intermediates share most packets, which keeps them cached."""
        if packet not in self._places:
            self._places[packet] = len(self._packets)
            self._packets += packet.ljust(-(-max(len(packet), 1) // _ALIGNMENT) * _ALIGNMENT, b"\0")
        return self._places[packet]

    def _packed(self, values: list[Any]) -> bytes:
        """The arguments as the C structure a kernel takes."""
        types = tuple(map(type, values))
        layout = self._layouts.get(types)
        if layout is None:
            fields = [(f"argument_{i}", kind) for i, kind in enumerate(types)]
            layout = self._layouts[types] = type("Arguments", (ctypes.Structure,), {"_fields_": fields})
        return bytes(layout(*values))

    def _keep(self, arguments: list[Any]) -> None:
        for argument in arguments:
            owner = argument
            while getattr(owner, "_ref", None) is not None:
                owner = owner._ref
            self._alive[id(owner)] = owner


def _make(function: Any, bounds: Any, arguments: Any, alive: object) -> None:
    """Runs the list outside the interpreter lock; what `alive` holds must outlive every run."""
    function(bounds, arguments)


def _nothing() -> None:
    """The replay of no work at all."""
