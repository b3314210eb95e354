"""The scenes that come with the package: `scenes/` of a checkout, `warpsim/scenes/` where it was installed."""

from __future__ import annotations

from pathlib import Path

from warpsim.core.errors import unknown_name

_PACKAGE = Path(__file__).resolve().parents[1]


def example_folder() -> Path:
    """The folder with the example scenes."""
    installed = _PACKAGE / "scenes"
    return installed if installed.is_dir() else _PACKAGE.parent / "scenes"


def example_scene(name: str) -> Path:
    """The USD file of an example scene.

    Args:
        name: Without its suffix, e.g. "throw" or "humanoid".

    Raises:
        UnknownNameError: There is none of that name; the error lists all.
    """
    known = sorted(path.stem for path in example_folder().glob("*.usda"))
    if name not in known:
        raise unknown_name("example scene", name, known)
    return example_folder() / f"{name}.usda"
