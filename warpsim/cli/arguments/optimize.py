"""Arguments of `warpsim optimize`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_folder, add_force, add_max_contacts, natural


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "optimize",
        description="Changes what the task in the file says may vary until its objective is minimal, and writes a "
        "folder: result.usda (the solved scene, animated), before.usda, record.json, loss.png, before_after.gif, and "
        "result.html, which shows before, after and the search in a browser. "
        "Ctrl-C and SIGTERM keep the best so far. docs/tasks.md explains how to write a task.",
        epilog="Exit code: 0 solved (or no condition of success is given), 3 not solved, 130 interrupted, 1 an error.",
    )
    parser.add_argument("scene", help="a .usd, .usda or .usdc file with a WarpsimTask prim")
    add_folder(parser)
    parser.add_argument("--task", metavar="PATH", help="the task's prim, where there are several")
    parser.add_argument(
        "--method", choices=("lbfgs", "adam", "polyak", "levenberg_marquardt", "ilqr"), help="instead of the task's"
    )
    parser.add_argument("--iterations", type=int, help="maximum number of iterations, instead of the task's")
    parser.add_argument("--seconds", type=float, help="maximum wall time of the search, instead of the task's")
    parser.add_argument("--budget", metavar="MEMORY", help="of a differentiated rollout, e.g. 64MB")
    parser.add_argument("--seed", type=natural, help="instead of the task's")
    add_max_contacts(parser)
    parser.add_argument("--starts", type=int, help="number of starting points, instead of the task's")
    parser.add_argument("--resume", action="store_true", help="go on with the search that is kept in the folder")
    parser.add_argument("--no-gif", action="store_true", help="do not draw before_after.gif")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    parser.add_argument(
        "--live",
        action="store_true",
        help="search in the browser: motion and losses as they come, pause, step (pip install warpsim[live])",
    )
    parser.add_argument("--open", action="store_true", help="with --live: open the browser")
    add_force(parser)
