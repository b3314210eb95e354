"""Which tests could notice a fault: those that run its function, where that was measured, or import its module.

Imports are followed in the source, from a test through its helpers and the package. Nearest are tests that import the
module itself or stand in the folder that mirrors its package; among them and among the others, those named after it, or
that speak of it most. Running only the nearest gives a lower bound: a test that catches a fault is part of the whole
tier.
"""

from __future__ import annotations

import ast
import json
from collections import deque
from pathlib import Path

from tools.mutate.faults import Fault

_NAMED = 20
"""Times that a word counts in a test's name."""
_FIRST = 10.0
"""s of tests in the first session of a fault; each further one may take four times as long."""


class ImportGraph:
    """Imports between the files of a project."""

    def __init__(self, root: Path, package: str) -> None:
        """Reads them.

        Args:
            root: Of the project; `tests` stands below it.
            package: The folder with the code.
        """
        self._root = root
        files = {_module(file.relative_to(root)): file for file in sorted((root / package).rglob("*.py"))}
        helpers = {file.stem: file for file in sorted((root / "tests").rglob("*.py"))}
        self._tests = {name: file for name, file in helpers.items() if name.startswith("test_")}
        self._files = {name: file.relative_to(root).as_posix() for name, file in files.items()}
        known = {**files, **helpers}
        self._imports = {name: _imported(name, file, known, whole=name in helpers) for name, file in known.items()}
        self._distances = {test: self._reached(test) for test in self._tests}
        self._said: dict[str, dict[str, float]] = {}
        self._texts = {name: file.read_text(encoding="utf-8").lower() for name, file in self._tests.items()}

    def tests_for(self, path: str) -> list[str]:
        """Test files, "tests/test_x.py", that reach a module, the likeliest to notice a change in it first."""
        module = _module(Path(path))
        mirrored = (*module.split("."), "")[1]
        near = []
        for test in self._tests:
            distance = self._distances[test].get(module)
            if distance is not None:
                spoken = sum(self._share(word, test) for word in _words(module))
                far = (distance > 1) + (self._tests[test].parent.name != mirrored)
                near.append((far, -spoken, distance, test))
        return [self._tests[test].relative_to(self._root).as_posix() for *_, test in sorted(near)]

    def using(self, path: str) -> set[str]:
        """Files of the package that import a module, directly or through others, and its own; "warpsim/…/x.py"."""
        module = _module(Path(path))
        found, queue = {module}, deque([module])
        while queue:
            name = queue.popleft()
            new = {other for other, imports in self._imports.items() if name in imports} - found
            found |= new
            queue.extend(new)
        return {self._files[name] for name in found if name in self._files}

    def _share(self, word: str, test: str) -> float:
        """The part of what all tests say of a word that one of them says; its name counts for much."""
        if word not in self._said:
            found = {name: text.count(word) for name, text in self._texts.items()}
            found = {name: count + _NAMED * (word in name.split("_")) for name, count in found.items()}
            total = max(sum(found.values()), 1)
            self._said[word] = {name: count / total for name, count in found.items()}
        return self._said[word][test]

    def _reached(self, start: str) -> dict[str, int]:
        """Everything a test reaches → imports on the shortest way; a test's helpers are part of it."""
        found, queue = {start: 0}, deque([start])
        while queue:
            name = queue.popleft()
            for other in self._imports.get(name, ()):
                if other not in found:
                    found[other] = found[name] + ("." in other)
                    queue.append(other)
        return found


class Reach:
    """Tests by what they run, from the map that `tools.mutate.reach` wrote."""

    def __init__(self, file: Path, root: Path, graph: ImportGraph) -> None:
        """Reads the map.

        Args:
            file: The map.
            root: Of the project.
            graph: Its imports, which say which tests are the nearest.
        """
        measured = json.loads(file.read_text(encoding="utf-8"))
        self._seconds: dict[str, float] = {name: entry["seconds"] for name, entry in measured.items()}
        self._functions = {name: set(entry["functions"]) for name, entry in measured.items()}
        self._files = {
            name: {function.rpartition(":")[0] for function in functions} for name, functions in self._functions.items()
        }
        self._root, self._graph = root, graph

    def sessions(self, fault: Fault, seconds: float) -> list[list[str]]:
        """Tests that run a fault's function, the nearest first, in groups of growing length.

        Args:
            fault: The fault.
            seconds: Of processor time, as measured, that all groups together may take.
        """
        nearest = {test: place for place, test in enumerate(self._graph.tests_for(fault.path))}
        reached = [
            (nearest.get(name.partition("::")[0], len(nearest)), self._seconds[name], name)
            for name in self._reaching(fault)
        ]
        sessions: list[list[str]] = [[]]
        room, left = _FIRST, seconds
        for _, cost, name in sorted(reached):
            if cost > left:
                continue
            if sessions[-1] and cost > room:
                sessions.append([])
                room = _FIRST * 4.0 ** (len(sessions) - 1)
            sessions[-1].append(name)
            room, left = room - cost, left - cost
        return [session for session in sessions if session]

    def _reaching(self, fault: Fault) -> set[str]:
        """Tests that run the innermost function around a fault; of a function of kernels, those that launch one."""
        source = (self._root / fault.path).read_text(encoding="utf-8")
        for line in reversed(_functions_around(source, fault.line)):
            place = f"{fault.path}:{line}"
            if found := {name for name, functions in self._functions.items() if place in functions}:
                return found
        own = {name for name, files in self._files.items() if fault.path in files}
        if own and "wp." not in source:
            return own
        users = self._graph.using(fault.path)
        return own | {name for name, files in self._files.items() if users & files}


def _functions_around(source: str, line: int) -> list[int]:
    """First lines, decorators included, of the functions that enclose a line, the outermost first."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first <= line <= node.end_lineno:
                found.append(first)
    return sorted(found)


def _words(module: str) -> set[str]:
    """Words of a module's name and of the package it is in."""
    return set("_".join(module.split(".")[1:][-2:]).split("_")) - {""}


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, file: Path, known: dict[str, Path], *, whole: bool) -> set[str]:
    """Modules that a file names.

    Args:
        name: Of the file's module.
        file: The file.
        known: Modules that count.
        whole: Only whole names: a test that compares beginnings of names does not use what they stand for.
    """
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # of a package that imports its parts by name when they are asked for
            if node.value.endswith(".") and not whole:  # the first part of such a name
                found |= {module for module in known if module.startswith(node.value)}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {module for module in found if module in known and module != name}
