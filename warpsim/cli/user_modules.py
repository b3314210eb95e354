"""Modules of the user's own that a command loads first, such as one that registers a kind of matter."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from warpsim.core.errors import InputError


def import_user_module(name: str) -> None:
    """Imports a module.

    Args:
        name: A Python file ("net.py"), or a module's name, looked for in the working directory too.

    Raises:
        InputError: There is none.
    """
    if name.endswith(".py"):
        _import_file(Path(name))
        return
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there and misses another one
        raise InputError(
            f"--import {name}: no such module; give the path of a .py file, or a module that Python finds"
        ) from error


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"--import {path}: no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # its name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where Warp and dataclasses look for it
    spec.loader.exec_module(module)
