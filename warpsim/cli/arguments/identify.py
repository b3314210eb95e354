"""Arguments of `warpsim identify`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force, natural


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "identify",
        description="Fits values of a scene to recordings (see docs/identification.md for the formats), with intervals "
        "clustered by recording and errors on held-out recordings.",
    )
    parser.add_argument(
        "data", help="recordings: .npz, .csv, .h5, .hdf5, .parquet, .mcap, .bag, or a folder of ROS bags"
    )
    parser.add_argument("scene", help="a .usd, .usda, .usdc, .usdz, .xml (MJCF) or .urdf file")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where report and fitted scene go")
    parser.add_argument(
        "-p",
        "--parameter",
        action="append",
        required=True,
        metavar="KEY[=LOWER:UPPER]",
        help="what may vary: /prim.attribute, array or array:item, with [i] for one component; repeat for more",
    )
    parser.add_argument("--noise", action="append", default=[], metavar="CHANNEL=STD", help="of a channel, SI")
    parser.add_argument("--units", action="append", default=[], metavar="CHANNEL=UNIT", help="of a channel, e.g. deg")
    parser.add_argument("--samples", type=natural, help="compared samples, from the start (default: all)")
    parser.add_argument(
        "--start", default="measured", help="where rollouts start: measured (default), smoothed or fitted"
    )
    parser.add_argument("--softening", default="0", help="m, or several for a schedule: 0.008,0.004,0")
    parser.add_argument("--impacts", action="store_const", const=True, help="bounces are impacts")
    parser.add_argument("--substeps", type=natural, help="steps per sample (default: as the scene's time step says)")
    parser.add_argument("--validation", type=float, default=0.25, help="share of recordings held out (default: 0.25)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of these")
    parser.add_argument("--iterations", type=natural, default=10, help="at most, per stage (default: 10)")
    parser.add_argument("--batch", type=natural, help="recordings of every stage but the last (default: all)")
    parser.add_argument("--windows", type=natural, help="samples of parts that are fitted (default: whole recordings)")
    parser.add_argument(
        "--stride", type=natural, help="samples from one's start to the next one's (default: end to end)"
    )
    parser.add_argument("--continuity", help="how far windows may lie apart, or several for a schedule: 10,1,0.1")
    parser.add_argument("--bootstrap", type=natural, default=0, help="fits of resampled recordings for the intervals")
    parser.add_argument("--spread", type=float, default=0.0, help="of values over which predictions are averaged")
    parser.add_argument("--folds", type=natural, default=0, help="of a cross validation")
    parser.add_argument("--threads", type=natural, default=1, help="that share the worlds")
    add_force(parser)
