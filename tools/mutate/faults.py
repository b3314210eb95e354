"""The faults that a source file could have: small, plausible, and syntactically right."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_NEGATED: dict[type[ast.cmpop], str] = {
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
_EXTREMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "amin": "amax",
    "amax": "amin",
    "argmin": "argmax",
    "argmax": "argmin",
}
_UNTOUCHED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Global)
"""Messages, and what a wrong edit would only keep from running."""

_COMPOUND = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda)
"""What needs brackets to stay one operand."""


@dataclass(frozen=True, order=True)
class Fault:
    """One edit of one file.

    Attributes:
        path: Of the file, relative to the project.
        line: In which the edit begins.
        start: Offset of its first byte.
        end: Offset past its last byte.
        kind: "sign", "comparison", "extreme", "factor", "index" or "logic".
        before: The text that is replaced.
        after: What replaces it.
    """

    path: str
    line: int
    start: int
    end: int
    kind: str
    before: str
    after: str

    def apply(self, source: str) -> str:
        """The file with the fault in it."""
        raw = source.encode()
        assert raw[self.start : self.end].decode() == self.before, "the file is not the one the fault was drawn from"
        return (raw[: self.start] + self.after.encode() + raw[self.end :]).decode()

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: `{_one_line(self.before)}` → `{_one_line(self.after)}`"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def faults_of(path: str, source: str) -> list[Fault]:
    """Every fault of the known kinds that a file could have, in order.

    Args:
        path: Recorded in each of them.
        source: The file's text.
    """
    raw = source.encode()
    return sorted(
        Fault(path, raw[:start].count(b"\n") + 1, start, end, kind, raw[start:end].decode(), after)
        for start, end, kind, after in _edits(source)
        if raw[start:end].decode() != after
    )


def parses(source: str) -> bool:
    """Whether a text is Python: an edit between brackets may spoil it."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _edits(source: str) -> Iterator[tuple[int, int, str, str]]:
    """(first byte, past the last, kind, replacement) of each edit."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    @cache
    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset

    raw = source.encode()

    def text(node: ast.expr) -> str:
        first, last = span(node)
        alone = raw[first:last].decode()
        return f"({alone})" if isinstance(node, _COMPOUND) else alone

    for node in _walk(ast.parse(source)):
        if isinstance(node, ast.BinOp):
            yield from _arithmetic(node, span, text)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            kind = "sign" if isinstance(node.op, ast.USub) else "logic"
            yield *span(node), kind, text(node.operand)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _NEGATED:
            between = span(node.left)[1], span(node.comparators[0])[0]
            yield *between, "comparison", _swapped(raw[slice(*between)].decode(), _NEGATED[type(node.ops[0])])
        elif isinstance(node, ast.BoolOp):
            between = span(node.values[0])[1], span(node.values[1])[0]
            word = "or" if isinstance(node.op, ast.And) else "and"
            yield *between, "logic", _swapped(raw[slice(*between)].decode(), word)
        elif isinstance(node, ast.Call):
            yield from _extremes(node.func, span)
        elif isinstance(node, ast.Subscript):
            yield from _indices(node.slice, span)


def _arithmetic(node: ast.BinOp, span, text) -> Iterator[tuple[int, int, str, str]]:
    between = span(node.left)[1], span(node.right)[0]
    if isinstance(node.op, ast.Add | ast.Sub):
        yield *between, "sign", " - " if isinstance(node.op, ast.Add) else " + "
    elif isinstance(node.op, ast.Mult):
        yield *span(node), "factor", text(node.left)
        yield *span(node), "factor", text(node.right)
    elif isinstance(node.op, ast.Div):
        yield *span(node), "factor", text(node.left)


def _swapped(gap: str, word: str) -> str:
    """The gap between two operands, brackets and breaks kept, with another operator in it."""
    old = gap.strip().strip("()").strip()
    return gap.replace(old, word, 1) if old else f" {word} "


def _extremes(function: ast.expr, span) -> Iterator[tuple[int, int, str, str]]:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    if name in _EXTREMES:
        end = span(function)[1]
        yield end - len(name), end, "extreme", _EXTREMES[name]


def _indices(index: ast.expr, span) -> Iterator[tuple[int, int, str, str]]:
    """Another constant index; of several, each in turn."""
    for part in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(part, ast.Constant) and type(part.value) is int:
            yield *span(part), "index", str(part.value - 1 if part.value > 0 else 1)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes whose edit changes what is computed: no annotation, message, decorator or comparison with a version."""
    yield node
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST) and not isinstance(child, _UNTOUCHED):
                yield from _walk(child)
