"""The command line, `warpsim COMMAND …`; two files for each command.

`warpsim.cli.arguments.<command>` says what it takes, and loads nothing heavy; `warpsim.cli.commands.<command>` runs it
and returns the exit code, or the steps that lead to it.

Exit codes: 0 done, 1 the scene or the run is at fault, 2 the command line is, 3 a task is not solved (`optimize`,
`stress`), 4 `stress` found a simulator exploit, 130 interrupted.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Generator, Sequence
from types import ModuleType

from warpsim.cli.failures import explain
from warpsim.cli.user_modules import import_user_module
from warpsim.core.driving import drive
from warpsim.core.errors import AssumedWarning, CacheWarning, UnsupportedPhysicsWarning
from warpsim.version import __version__

COMMANDS = {
    "getting started": {
        "demo": "solve an example task and write a page that shows it",
        "init": "write a scene and a task for a robot, with all that may vary",
    },
    "scenes": {
        "inspect": "show what a scene contains and how it is simulated",
        "view": "show a scene or a motion in the browser",
        "render": "draw a file, for example what `simulate` wrote",
        "plot": "draw the curves of a run record",
        "convert": "write an MJCF or URDF robot as USD",
    },
    "simulation": {
        "simulate": "run a scene and save the motion",
        "replay": "run a record again and compare the bits",
        "compare": "say what differs between two run records",
    },
    "optimization": {
        "optimize": "solve the task in a USD file",
        "stress": "replay an optimized result in changed simulators",
        "sweep": "a scene at every point of a grid of values",
        "identify": "fit values of a scene to recordings",
    },
    "policies": {
        "train": "train the policy that a USD file asks for",
        "play": "let a trained policy control a scene",
    },
    "gradients": {
        "gradcheck": "check a scene's gradients against finite differences",
        "validity": "say how far along a rollout its gradient can be trusted",
        "panel": "gradients of small cases with known derivatives: exact, ours, naive autodiff",
    },
    "installation": {
        "plan": "say what a job over ranks will take, and where it stops scaling",
        "warmup": "compile all kernels of the simulator into Warp's cache",
        "doctor": "versions, caches and settings, for a report of a fault",
    },
}
"""Group → command → what it does; its two modules have its name."""


def make_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser of the command line.

    Args:
        command: The command whose arguments it knows; None: it knows the names of all, and no more.
    """
    groups = "\n\n".join(
        "\n".join([f"{group}:", *(f"  {name:<11} {what}" for name, what in commands.items())])
        for group, commands in COMMANDS.items()
    )
    parser = argparse.ArgumentParser(
        prog="warpsim",
        description="Simulate and differentiate robots described in USD, MJCF or URDF.",
        epilog=f"{groups}\n\n`warpsim COMMAND --help` explains a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="warpsim [--help] [--version] [--traceback] [--verbose] [--import MODULE] COMMAND …"
        if command is None
        else None,
    )
    parser.add_argument("--version", action="version", version=f"warpsim {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    parser.add_argument(
        "--verbose", action="store_true", help="tell what is compiled, captured, planned and found in caches"
    )
    parser.add_argument(
        "--import",
        dest="modules",
        metavar="MODULE",
        action="append",
        default=[],
        help="load a module or .py file of your own first, e.g. one that registers a kind of matter; may be repeated",
    )
    names = [name for commands in COMMANDS.values() for name in commands]
    if command is None:
        parser.add_argument("command", metavar="COMMAND", choices=names, help="one of those below")
    else:
        _load("arguments", command).add(parser.add_subparsers(metavar="COMMAND", required=True))
    return parser


def _load(part: str, command: str) -> ModuleType:
    """A module of a command: `arguments` or `commands`."""
    gc.disable()  # looking for garbage among what modules make takes a fifth of the time, and there is none
    try:
        return importlib.import_module(f"warpsim.cli.{part}.{command}")
    finally:
        gc.enable()


def _named(argv: Sequence[str]) -> str | None:
    """The command of a command line, if it is one of ours: the first argument that is not an option."""
    places = range(len(argv))
    own = (i for i in places if not argv[i].startswith("-") and not (i > 0 and argv[i - 1] == "--import"))
    first = next((argv[i] for i in own), None)
    return first if any(first in commands for commands in COMMANDS.values()) else None


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    who = "warpsim" if category in (UnsupportedPhysicsWarning, AssumedWarning, CacheWarning) else category.__name__
    print(f"{who}: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line.

    Args:
        argv: Arguments without the program's name; None: those of the process.

    Returns:
        The exit code.
    """
    given = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without our letters shows others instead of failing
            stream.reconfigure(errors="replace")
    if "--verbose" in given:  # before Warp is loaded
        os.environ["WARPSIM_VERBOSE"] = "1"
        logging.basicConfig(format="%(name)s: %(message)s")
        logging.getLogger("warpsim").setLevel(logging.INFO)
    try:
        command = _named(given)
        arguments = make_parser(command).parse_args(given)
        for module in arguments.modules:
            import_user_module(module)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            ended = _load("commands", str(command)).run(arguments)
            return drive(ended) if isinstance(ended, Generator) else ended
    except BrokenPipeError:  # whoever read our output has seen enough; nothing more can be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("warpsim: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if "--traceback" in given:
            raise
        print(f"warpsim: {explain(error)}", file=sys.stderr)
        return 1
    finally:
        # CPython remembers a KeyboardInterrupt that left an `exec` of text (dataclasses make their methods so), however
        # well it was handled later, and ends the process by a signal; the next `eval` makes it forget.
        eval("0")


if __name__ == "__main__":
    sys.exit(main())
