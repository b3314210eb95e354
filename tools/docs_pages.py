"""Pages of the documentation site that follow from the code: the API reference, the commands, the changes, the gallery.

A hook of MkDocs (see `mkdocs.yml`): they are made while the site is built, so that none can be out of date.
"""

from __future__ import annotations

import argparse
import ast
import base64
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import warpsim  # noqa: E402
from warpsim.cli.main import COMMANDS, make_parser  # noqa: E402
from warpsim.io.usd.reader import open_stage  # noqa: E402
from warpsim.task.targets import with_targets  # noqa: E402
from warpsim.view.page import page_html  # noqa: E402
from warpsim.view.page.html import packed_html  # noqa: E402
from warpsim.view.page.stage_content import stage_page  # noqa: E402

HELP_COLUMNS = "100"
_NOT_SEARCHED = "---\nsearch: {exclude: true}\n---\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    pages = {
        "api/index.md": api_index(),
        "commands.md": commands_page(),
        "gallery.md": gallery_page(),
        "changelog.md": _NOT_SEARCHED + (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "]("),
        **{f"api/{package}.md": api_page(package) for package in warpsim.PUBLIC_PACKAGES},
    }
    pages |= {f"gallery/{name}.html": scene_page(name) for name in scene_names()}
    pages |= {f"gallery/examples/{name}.html": example_page(name) for name in example_names()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def scene_names() -> list[str]:
    """Of the example scenes."""
    return sorted(path.stem for path in (ROOT / "scenes").glob("*.usda"))


def example_names() -> list[str]:
    """Of the examples."""
    return sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


def example_page(name: str) -> str:
    """What an example made, as `tools/make_gallery.py` kept it, in today's viewer."""
    kept = (ROOT / "docs" / "gallery" / f"{name}.bin").read_bytes()
    return packed_html(name, base64.b64encode(kept).decode("ascii"))


def example_summary(name: str) -> str:
    """The first sentence of an example's docstring."""
    text = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].rstrip(".")


def scene_page(name: str) -> str:
    """An example scene, with its task's targets, to orbit and to click on."""
    stage = open_stage(ROOT / "scenes" / f"{name}.usda")
    return page_html(with_targets(stage_page(stage, name), stage))


def gallery_page() -> str:
    """Thumbnails of all examples and scenes, each a link to its page."""
    examples = [
        f"[![{name}](images/gallery/examples/{name}.jpg)](gallery/examples/{name}.html)<br>`{name}`: {about}"
        for name, about in ((name, example_summary(name)) for name in example_names())
    ]
    scenes = [f"[![{name}](images/gallery/{name}.png)<br>{name}](gallery/{name}.html)" for name in scene_names()]
    return "\n".join(
        [
            "# Gallery",
            "",
            "What the programs in `examples/` make: a click opens the page, to orbit, to play, to click on things.",
            "`tools/make_gallery.py` runs them and takes the pictures.",
            "",
            *_cells(examples),
            "",
            "## Scenes",
            "",
            "The files in `scenes/`, as `warpsim view scenes/NAME.usda` shows them.",
            "",
            *_cells(scenes),
        ]
    )


def _cells(cells: list[str]) -> list[str]:
    """A table of three columns."""
    filled = cells + [""] * (-len(cells) % 3)
    return ["| | | |", "|---|---|---|", *(f"| {' | '.join(filled[k : k + 3])} |" for k in range(0, len(filled), 3))]


def api_index() -> str:
    """The list of public packages."""
    lines = [
        "# API reference",
        "",
        "The public API is what `__all__` of these packages names. Nothing else is promised to stay.",
        "",
        "| package | |",
        "|---|---|",
    ]
    for package in warpsim.PUBLIC_PACKAGES:
        summary = (getdoc(import_module(package)) or "").partition("\n")[0]
        lines.append(f"| [`{package}`]({package}.md) | {summary} |")
    return "\n".join(lines)


def api_page(package: str) -> str:
    """The reference of a package: what it says of itself, then every public name."""
    module = import_module(package)
    parts = [f"# {package}", getdoc(module) or ""]
    for name in warpsim._PUBLIC if package == "warpsim" else module.__all__:
        place = f"{warpsim._PUBLIC[name]}.{name}" if package == "warpsim" else f"{package}.{name}"
        home = _own_page(name) if package == "warpsim" else None
        if home is not None:
            parts.append(f"## {package}.{name}\n\nSee [`{home}.{name}`]({home}.md).")
            continue
        options = f"\n    options:\n      heading: {package}.{name}\n      toc_label: {name}"
        parts.append(f"::: {place}{options}")
        parts += _delegated(f"{package}.{name}", getattr(module, name))
    return "\n\n".join(parts)


def _delegated(title: str, value: object) -> Iterator[str]:
    """Methods that a class shows of its parts: they are explained where they are defined."""
    for name, member in vars(value).items() if isinstance(value, type) else ():
        home = getattr(member, "__qualname__", "")
        if name.startswith("_") or isinstance(member, type) or home in ("", f"{value.__qualname__}.{name}"):
            continue
        options = f"\n    options:\n      heading: {title}.{name}\n      toc_label: {name}\n      heading_level: 3"
        yield f"::: {member.__module__}.{home}{options}"


def _own_page(name: str) -> str | None:
    """The package that explains a name of `warpsim` which it exports too."""
    value = getattr(warpsim, name)
    homes = (package for package in warpsim.PUBLIC_PACKAGES[1:] if getattr(import_module(package), name, None) is value)
    return next(homes, None)


def commands_page() -> str:
    """What `warpsim --help` and `warpsim COMMAND --help` print."""
    os.environ["COLUMNS"] = HELP_COLUMNS
    return "\n\n".join(_command_parts())


def _command_parts() -> Iterator[str]:
    yield "# Commands"
    yield "`warpsim COMMAND …`, or `python -m warpsim COMMAND …` where the scripts' folder is not on the path."
    yield f"```text\n{make_parser(None).format_help()}```"
    for group, commands in COMMANDS.items():
        yield f"## {group[0].upper()}{group[1:]}"
        for command in commands:
            yield f"### {command}"
            yield f"```text\n{_subparser(command).format_help()}```"


def _subparser(command: str) -> argparse.ArgumentParser:
    actions = make_parser(command)._actions
    (choices,) = (action.choices for action in actions if isinstance(action, argparse._SubParsersAction))
    return choices[command]
