"""Files and functions stay small enough to read at once, and nothing long is written twice."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "warpsim"
FILE_LINES = 400
FUNCTION_LINES = 80
COPIED_LINES = 15
SIMULATOR_LINES = 350

FILES = sorted(PACKAGE.rglob("*.py"))
_ARGUMENT = re.compile(r"[*\w.]+(: .+)?,")
"""An argument on a line of its own: Warp has no other way to say what a kernel takes than to list it."""
_NO_CODE = re.compile(r"|#.*|[\])}]+[,:]?|from .*|import .*|\"\"\".*\"\"\"")


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Name and number of lines of every function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def code_lines(text: str) -> list[tuple[int, str]]:
    """Number and text of the lines that say something: no arguments, imports, comments or lone brackets."""
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(n, line) for n, line in lines if not (_NO_CODE.fullmatch(line) or _ARGUMENT.fullmatch(line))]


def copies(texts: dict[str, str], length: int) -> list[str]:
    """Places "a:10 and b:40" where more than `length` lines in a row stand again."""
    seen: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, text in texts.items():
        lines = code_lines(text)
        for k in range(len(lines) - length):
            seen[tuple(line for _, line in lines[k : k + length + 1])].append(f"{name}:{lines[k][0]}")
    return [" and ".join(places) for places in seen.values() if len(places) > 1]


def test_files_are_short():
    long = {str(p.relative_to(PACKAGE)): n for p in FILES if (n := len(p.read_text("utf-8").splitlines())) > FILE_LINES}
    assert not long, f"more than {FILE_LINES} lines; give each responsibility a file: {long}"


def test_functions_are_short():
    found = ((p, *made) for p in FILES for made in functions(ast.parse(p.read_text("utf-8"))))
    long = [f"{p.relative_to(PACKAGE)} {name} ({n})" for p, name, n in found if n > FUNCTION_LINES]
    assert not long, f"more than {FUNCTION_LINES} lines; name their parts: {', '.join(long)}"


def test_the_simulator_delegates():
    tree = ast.parse((PACKAGE / "sim" / "simulator.py").read_text("utf-8"))
    (simulator,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert not simulator.bases, "one class, built of parts that it holds"
    assert (simulator.end_lineno or 0) - simulator.lineno + 1 <= SIMULATOR_LINES


def test_nothing_long_is_written_twice():
    found = copies({str(p.relative_to(PACKAGE)): p.read_text("utf-8") for p in FILES}, COPIED_LINES)
    assert not found, f"the same {COPIED_LINES + 1} lines; write them once: {found}"


@pytest.mark.parametrize(("first", "again", "expected"), [(16, 16, 1), (16, 15, 0), (20, 18, 3)])
def test_copies_are_found(first, again, expected):
    lines = [f"x{k} = {k}" for k in range(first)]
    texts = {"a": "\n".join(lines), "b": "\n\n".join(["# note", *lines[:again], "y = 1"])}
    assert len(copies(texts, COPIED_LINES)) == expected


def test_lists_of_arguments_do_not_count():
    names = [f"    a{k}: wp.array(dtype=real)," for k in range(20)] + [f"    work.a{k}," for k in range(20)]
    assert not code_lines("\n".join([*names, "    # why", "):", '    """What."""', "from x import y"]))
