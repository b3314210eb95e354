"""Which tests could notice a fault in a module: those that import it, the nearest first.

Imports are followed in the source, from a test through its helpers and the package. Nearest are tests that import the
module itself or stand in the folder that mirrors its package; among them and among the others, those named after it, or
that speak of it most. Running only the nearest gives a lower bound: a test that catches a fault is part of the whole
tier.
"""

from __future__ import annotations

import ast
from collections import deque
from pathlib import Path

_NAMED = 20
"""Times that a word counts in a test's name."""


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
