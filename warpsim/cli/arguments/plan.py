"""Arguments of `warpsim plan`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_max_contacts, add_source


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "plan",
        description="Says before a job over ranks begins what an update (a rollout of all worlds, and its gradient) "
        "takes: memory of a rank, bytes exchanged, time, and where more ranks stop helping. One block of worlds is "
        "timed on this machine; the rest follows from it. docs/parallel.md says how.",
    )
    add_source(parser)
    add_max_contacts(parser)
    parser.add_argument("--worlds", type=int, default=64, help="of the whole job (default: 64)")
    parser.add_argument("--steps", type=int, help="of a rollout (default: the task's, or 1000)")
    parser.add_argument("--ranks", type=int, default=4, help="processes (default: 4)")
    parser.add_argument("--blocks", type=int, help="as WARPSIM_BLOCKS of the job (default: 16, or one for each rank)")
    parser.add_argument(
        "--numbers",
        type=int,
        help="of each world, whose gradient is gathered (default: those the task chooses, or controls of all steps)",
    )
    parser.add_argument("--memory", help="of a differentiated rollout, e.g. 64MB")
    parser.add_argument("--latency", type=float, default=50.0, metavar="µs", help="between ranks (default: 50)")
    parser.add_argument("--bandwidth", type=float, default=10.0, metavar="Gbit/s", help="of a rank (default: 10)")
