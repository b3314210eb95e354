"""The command line, `warpsim COMMAND …`; one file of `warpsim.commands` for each command.

Exit codes: 0 done, 1 the scene or the run is at fault, 2 the command line is, 3 a task is not solved (`optimize`,
`stress`), 4 `stress` found a simulator exploit, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

import warp as wp

from warpsim.commands import (
    compare,
    convert,
    gradcheck,
    inspect,
    optimize,
    panel,
    render,
    replay,
    simulate,
    stress,
    validity,
    view,
    warmup,
)
from warpsim.errors import AssumedWarning, LeftOutWarning, WarpsimError
from warpsim.version import __version__

COMMANDS = (
    inspect,
    simulate,
    optimize,
    stress,
    gradcheck,
    validity,
    panel,
    compare,
    replay,
    view,
    render,
    convert,
    warmup,
)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="warpsim",
        description="Simulate and differentiate robots described in USD, MJCF or URDF.",
        epilog="`warpsim COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"warpsim {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    parser.add_argument("--verbose", action="store_true", help="let Warp report what it compiles")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return parser


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    who = "warpsim" if category in (LeftOutWarning, AssumedWarning) else category.__name__
    print(f"{who}: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line.

    Args:
        argv: Arguments without the program's name; None: those of the process.

    Returns:
        The exit code.
    """
    arguments = make_parser().parse_args(argv)
    if not arguments.verbose:
        wp.config.log_level = wp.LOG_WARNING
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return arguments.run(arguments)
    except WarpsimError as error:
        if arguments.traceback:
            raise
        print(f"warpsim: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read our output has seen enough; nothing more can be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("warpsim: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
