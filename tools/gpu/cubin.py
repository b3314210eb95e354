"""Registers and stack of the kernels in a cubin, read from its ELF sections `.nv.info`."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOLS, _FUNCTION = 2, 2
_NO_VALUE, _BYTE, _SHORT, _SIZED = 1, 2, 3, 4
"""Forms of an entry: nothing, a byte or two within it, or so many bytes after it."""
_REGISTERS, _FRAME, _STACK = 0x2F, 0x11, 0x12


@dataclass(frozen=True)
class Usage:
    """What a thread of a kernel takes.

    Attributes:
        kernel: Its name.
        registers: 32 bits each.
        stack: Bytes, of the functions it calls too.
    """

    kernel: str
    registers: int
    stack: int


def usages(path: Path) -> list[Usage]:
    """All kernels of a cubin, in the order of their names.

    Raises:
        ValueError: It is no ELF file of 64 bits.
    """
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        raise ValueError(f"{path} is no ELF file of 64 bits")
    sections = _sections(data)
    names = _functions(data, sections)
    found: dict[str, dict[int, int]] = {}
    for name, start, size in ((s[0], s[1], s[2]) for s in sections if s[0] == ".nv.info"):
        assert name
        for attribute, symbol, value in _entries(data[start : start + size]):
            if attribute in (_REGISTERS, _FRAME, _STACK) and symbol in names:
                found.setdefault(names[symbol], {})[attribute] = value
    kernels = {s[0].removeprefix(".text.") for s in sections if s[0].startswith(".text.")}
    return [
        Usage(name, values.get(_REGISTERS, 0), max(values.get(_STACK, 0), values.get(_FRAME, 0)))
        for name, values in sorted(found.items())
        if name in kernels and "_cuda_kernel_" in name
    ]


def _sections(data: bytes) -> list[tuple[str, int, int, int, int]]:
    """Name, start, size, type and linked section of each."""
    header = _HEADER.unpack_from(data)
    first, size, count, names_at = header[6], header[11], header[12], header[13]
    raw = [_SECTION.unpack_from(data, first + k * size) for k in range(count)]
    names = raw[names_at][4]
    return [(_text(data, names + s[0]), s[4], s[5], s[1], s[6]) for s in raw]


def _functions(data: bytes, sections: list[tuple[str, int, int, int, int]]) -> dict[int, str]:
    """Names of functions by their number in the table of symbols."""
    found = {}
    for _name, start, size, kind, linked in sections:
        if kind != _SYMBOLS:
            continue
        texts = sections[linked][1]
        for k in range(size // _SYMBOL.size):
            name, info, *_rest = _SYMBOL.unpack_from(data, start + k * _SYMBOL.size)
            if info & 15 == _FUNCTION:
                found[k] = _text(data, texts + name)
    return found


def _entries(info: bytes) -> list[tuple[int, int, int]]:
    """Attribute, symbol and value of the entries that have both."""
    found, at = [], 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _SIZED:
            if size == 8:
                found.append((attribute, *struct.unpack_from("<II", info, at)))
            at += size
        elif form not in (_NO_VALUE, _BYTE, _SHORT):
            raise ValueError(f"an entry of form {form} in .nv.info, which is not known")
    return found


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
