"""Which tests could notice a fault in a module: those that import it, the nearest first.

Imports are followed in the source, from a test through its helpers and the package. A test that imports the module
itself is nearest; among the others, those named after it, then those that speak of it most. Running only the nearest
gives a lower bound: a test that catches a fault is part of the whole tier.
"""

from __future__ import annotations

import ast
from collections import deque
from pathlib import Path


class ImportGraph:
    """Imports between the files of a project."""

    def __init__(self, root: Path, package: str) -> None:
        """Reads them.

        Args:
            root: Of the project; `tests` stands below it.
            package: The folder with the code.
        """
        files = {_module(file.relative_to(root)): file for file in sorted((root / package).rglob("*.py"))}
        helpers = {file.stem: file for file in sorted((root / "tests").glob("*.py"))}
        self._tests = {name: file for name, file in helpers.items() if name.startswith("test_")}
        known = {**files, **helpers}
        self._imports = {name: _imported(name, file, known) for name, file in known.items()}
        self._texts = {name: file.read_text(encoding="utf-8").lower() for name, file in self._tests.items()}

    def tests_for(self, path: str) -> list[str]:
        """Test files, "tests/test_x.py", that reach a module, the likeliest to notice a change in it first."""
        module = _module(Path(path))
        near = []
        for test in self._tests:
            distance = self._distance(test, module)
            if distance is not None:
                package, stem = (["", *module.split(".")])[-2:]
                words = test.split("_")
                named = 2 * (package in words) + len(set(stem.split("_")) & set(words))
                spoken = sum(self._texts[test].count(word) for word in stem.split("_"))
                near.append((distance > 1, -named, -spoken, distance, test))
        return [f"tests/{test}.py" for *_, test in sorted(near)]

    def _distance(self, start: str, goal: str) -> int | None:
        seen, queue = {start}, deque([(start, 0)])
        while queue:
            name, distance = queue.popleft()
            if name == goal:
                return distance
            for other in self._imports.get(name, ()):
                if other not in seen:
                    seen.add(other)
                    # a test's helpers are part of it
                    queue.append((other, distance + ("." in other)))
        return None


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, file: Path, known: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # of a package that imports its parts by name when they are asked for
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {module for module in found if module in known and module != name}
