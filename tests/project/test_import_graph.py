"""The package's imports: no cycle, none hidden in a function, none of the package root; importing it is cheap."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from warpsim.core.registry import PROVIDERS, provided

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "warpsim"

ORDER = {
    "warpsim": (
        *("version", "core", "scene", "geometry", "io", "view", "tape", "matter", "collision", "solve"),
        *("rigid", "deformable", "particles", "coupling", "policy", "engine", "autograd", "sim", "check"),
        *("parallel", "objective", "optimizers", "identification", "learn", "task", "gym", "cli", "__main__"),
    ),
    "warpsim.io": (
        "example_scenes",
        "reading_limits",
        "usd",
        "mjcf",
        "mjcf_export",
        "scene_files",
        "saved_motion",
        "load",
    ),
    "warpsim.view": ("items", "page", "raycast", "gltf", "plots", "live"),
    "warpsim.rigid": ("model", "work", "dynamics", "compile", "constraint", "query", "sensors", "step"),
    "warpsim.check": ("gradcheck", "validity", "panel", "records"),
    "warpsim.cli": ("failures", "user_modules", "arguments", "commands", "main"),
}
"""Package → its parts, each of which may import only those before it; CONTRIBUTING.md tells what they are for."""


def modules(package: Path) -> dict[str, Path]:
    """Dotted module name → file, for every Python file of a package."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imported(node: ast.Import | ast.ImportFrom, module: str, is_package: bool, known: set[str]) -> set[str]:
    """The package's own modules that one import statement names.

    Loading `a.b` also runs `a/__init__.py`; that implicit edge is left out, or each package that re-exports its modules
    would be a cycle with them.
    """
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & known
    stem = node.module or ""
    if node.level:
        parts = module.split(".")
        base = parts[: len(parts) - node.level + is_package]
        stem = ".".join([*base, stem] if stem else base)
    if stem not in known:
        return set()
    return {f"{stem}.{alias.name}" if f"{stem}.{alias.name}" in known else stem for alias in node.names}


def import_graph(package: Path) -> dict[str, set[str]]:
    """Module → modules it imports, at any depth of its source (`if TYPE_CHECKING` included)."""
    files = modules(package)
    graph: dict[str, set[str]] = {}
    for module, path in files.items():
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))
        statements = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
        graph[module] = set().union(
            *(imported(n, module, path.name == "__init__.py", set(files)) for n in statements)
        ) - {module}
    return graph


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one import cycle in order, first repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])[::-1]
    return []


def hidden_imports(package: Path) -> list[str]:
    """Import statements inside functions, and imports by name anywhere but in three places.

    The registry loads public names on first use (PEP 562) and what convenience methods reach up for, the command line
    the one command it is to run: that is what keeps `import warpsim` and `warpsim --help` cheap. `warpsim --import`
    loads modules of the user's own, which are none of the package.
    """
    found = []
    for module, path in modules(package).items():
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        nodes = [n for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)]
        if module not in {f"{package.name}.{part}" for part in ("cli.main", "cli.user_modules", "core.registry")}:
            nodes += [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _imports_by_name(n.func)]
        found += sorted({f"{path.relative_to(package.parent)}:{n.lineno}" for n in nodes})
    return found


def _imports_by_name(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def test_no_import_cycle():
    found = cycle(import_graph(PACKAGE))
    assert not found, "import cycle: " + " → ".join(found)


def parts_graph(graph: dict[str, set[str]], package: str) -> dict[str, set[str]]:
    """Part of a package → other parts of it that something in it imports; a part is a module or a package."""

    def part(module: str) -> str | None:
        return module[len(package) + 1 :].split(".")[0] if module.startswith(package + ".") else None

    found: dict[str, set[str]] = {}
    for module, targets in graph.items():
        if (own := part(module)) is not None:
            others = {other for other in map(part, targets) if other is not None}
            found.setdefault(own, set()).update(others - {own})
    return found


def packages(graph: dict[str, set[str]]) -> list[str]:
    """Every package, at every level."""
    return sorted({module.rpartition(".")[0] for module in graph} - {""})


def test_packages_form_no_cycle_at_any_level():
    graph = import_graph(PACKAGE)
    for package in packages(graph):
        found = cycle(parts_graph(graph, package))
        assert not found, f"cycle among the parts of {package}: " + " → ".join(found)


@pytest.mark.parametrize("package", ORDER)
def test_packages_import_only_what_stands_before_them(package):
    parts = parts_graph(import_graph(PACKAGE), package)
    assert set(parts) == set(ORDER[package]), "declare where a new part stands"
    place = {part: k for k, part in enumerate(ORDER[package])}
    upward = [f"{part} → {other}" for part, others in parts.items() for other in others if place[other] > place[part]]
    assert upward == []


def test_only_the_root_is_loose():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "version.py"}


def test_the_registry_finds_what_it_promises():
    for name, (module, _) in PROVIDERS.items():
        if module.startswith("warpsim."):  # others are libraries that need not be installed
            assert callable(provided(name))


def test_no_hidden_import():
    assert hidden_imports(PACKAGE) == []


def test_no_module_imports_the_package_root():
    graph = import_graph(PACKAGE)
    assert [module for module, targets in graph.items() if PACKAGE.name in targets] == []


def _run(code: str, cache: Path) -> str:
    """Output of a fresh interpreter in the project with an empty kernel cache."""
    environment = {**os.environ, "WARP_CACHE_PATH": str(cache), "PYTHONPATH": str(PROJECT)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_is_light(tmp_path):
    heavy = ("torch", "mujoco", "pxr", "matplotlib")
    loaded = _run(f"import sys, warpsim; print([m for m in {heavy!r} if m in sys.modules])", tmp_path)
    assert loaded.strip() == "[]"
    assert list(tmp_path.rglob("*")) == []


def test_arguments_of_every_command_are_light(tmp_path):
    heavy = ("torch", "mujoco", "pxr", "matplotlib", "warp")
    code = (
        "import sys; from warpsim.cli.main import COMMANDS, make_parser\n"
        "for commands in COMMANDS.values():\n"
        "    for name in commands: make_parser(name)\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    assert _run(code, tmp_path).strip() == "[]"


def test_importing_every_module_compiles_nothing(tmp_path):
    names = [name for name in modules(PACKAGE) if not name.endswith("__main__")]
    _run(f"import importlib\nfor name in {names!r}: importlib.import_module(name)", tmp_path)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.fixture
def sample(tmp_path):
    """Builds a package from {relative path: source}."""

    def build(files: dict[str, str]) -> Path:
        for name, source in files.items():
            path = tmp_path / "sample" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
        return tmp_path / "sample"

    return build


@pytest.mark.parametrize(
    "files",
    [
        {"__init__.py": "", "a.py": "import sample.b", "b.py": "from sample.a import x"},
        {"__init__.py": "", "a.py": "from sample import b", "b.py": "from . import a"},
        {"__init__.py": "", "a.py": "from .b import x", "b.py": "if TYPE_CHECKING:\n    from .a import y"},
        {"__init__.py": "", "s/__init__.py": "from sample.s.a import x", "s/a.py": "from sample.s import x"},
        {"__init__.py": "from sample.a import x", "a.py": "import sample"},
    ],
)
def test_the_checker_sees_cycles(sample, files):
    assert cycle(import_graph(sample(files)))


def test_the_checker_sees_cycles_of_packages(sample):
    files = {
        **{f"{name}/__init__.py": "" for name in "st"},
        "__init__.py": "",
        "s/a.py": "import sample.t.b",
        "s/b.py": "",
        "t/a.py": "import sample.s.b",
        "t/b.py": "",
    }
    graph = import_graph(sample(files))
    assert cycle(graph) == []
    assert cycle(parts_graph(graph, "sample"))


def test_the_checker_accepts_a_layered_package(sample):
    files = {
        "__init__.py": "from sample.s import x",
        "s/__init__.py": "from .b import x\nfrom .a import y",
        "s/a.py": "import numpy",
        "s/b.py": "from sample.s.a import y\nfrom . import a",
    }
    package = sample(files)
    graph = import_graph(package)
    assert graph["sample.s.b"] == {"sample.s.a"}
    assert graph["sample.s"] == {"sample.s.a", "sample.s.b"}
    assert cycle(graph) == []
    assert hidden_imports(package) == []


def test_the_checker_sees_hidden_imports(sample):
    files = {
        "__init__.py": "",
        "core/__init__.py": "",
        "core/registry.py": "def load(name):\n    return importlib.import_module(name)",
        "a.py": "def f():\n    def g():\n        import os",
        "b.py": "x = importlib.import_module('os')",
        "c.py": "async def f():\n    from os import path",
    }
    assert hidden_imports(sample(files)) == ["sample/a.py:3", "sample/b.py:1", "sample/c.py:2"]
