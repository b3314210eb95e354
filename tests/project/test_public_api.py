"""The declared API: every name resolves, and examples and documentation use nothing else."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import FunctionType

import pytest

import warpsim

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = {
    "warpsim.core.kernel_lock": {"KERNELS"},
    "warpsim.core.precision": {"quat", "real", "vec3", "vec6"},
    "warpsim.core.spatial": {"angular", "linear", "quat_rotate"},
    "warpsim.io.usd.context": {"Context"},
}
"""What kernels and matters of one's own need, told in docs/exchange.md and docs/matter.md: no part of the API."""


def public(package: str) -> set[str]:
    return set(importlib.import_module(package).__all__)


@pytest.mark.parametrize("package", warpsim.PUBLIC_PACKAGES)
def test_every_public_name_resolves_and_is_documented(package):
    module = importlib.import_module(package)
    assert module.__doc__
    assert len(module.__all__) == len(public(package)), "a name is listed twice"
    for name in module.__all__:
        value = getattr(module, name)
        assert not isinstance(value, type | FunctionType) or value.__doc__, f"{package}.{name} has no docstring"


def used(code: str) -> set[tuple[str, str]]:
    """(module, name) of everything of warpsim that code imports or reads from `ws`."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "warpsim":
            found |= {(node.module, alias.name) for alias in node.names}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ws":
            found.add(("warpsim", node.attr))
    return found


def codes() -> dict[str, list[str]]:
    found = {str(path.relative_to(ROOT)): [path.read_text("utf-8")] for path in (ROOT / "examples").glob("*.py")}
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), flags=re.S | re.M)
        if blocks:
            found[str(page.relative_to(ROOT))] = blocks
    return found


@pytest.mark.parametrize("name", sorted(codes()))
def test_nothing_but_the_public_api_is_used(name):
    for code in codes()[name]:
        for module, attribute in used(code):
            if f"{module}.{attribute}" in warpsim.PUBLIC_PACKAGES:  # from warpsim.io.usd import author
                continue
            known = public(module) if module in warpsim.PUBLIC_PACKAGES else EXTENSIONS.get(module, set())
            assert attribute in known, f"{name} uses {module}.{attribute}, which is not public"
