"""`warpsim identify`: values of a scene from recordings."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpsim.cli.commands.common import natural
from warpsim.cli.commands.outputs import add_force, check_outputs
from warpsim.cli.commands.ranks import joined, writes
from warpsim.core.errors import InputError
from warpsim.identification import IdentifiedScene, Parameter, identify
from warpsim.identification.starts import STARTS
from warpsim.io.scene_files import scene_files
from warpsim.parallel.ranks import alone


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "identify",
        description="Fits values of a scene to recordings (see docs/identification.md for the formats), with intervals "
        "clustered by recording and errors on held-out recordings.",
    )
    parser.add_argument("data", help="recordings: .npz, .csv, .h5, .hdf5 or .parquet")
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
    parser.add_argument("--start", choices=STARTS, default="measured", help="where rollouts start (default: measured)")
    parser.add_argument("--softening", default="0", help="m, or several for a schedule: 0.008,0.004,0")
    parser.add_argument("--impacts", action="store_const", const=True, help="bounces are impacts")
    parser.add_argument("--substeps", type=natural, help="steps per sample (default: as the scene's time step says)")
    parser.add_argument("--validation", type=float, default=0.25, help="share of recordings held out (default: 0.25)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of these")
    parser.add_argument("--iterations", type=natural, default=10, help="at most, per stage (default: 10)")
    parser.add_argument("--bootstrap", type=natural, default=0, help="fits of resampled recordings for the intervals")
    parser.add_argument("--spread", type=float, default=0.0, help="of values over which predictions are averaged")
    parser.add_argument("--folds", type=natural, default=0, help="of a cross validation")
    parser.add_argument("--threads", type=natural, default=1, help="that share the worlds")
    add_force(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fits, prints, writes."""
    folder = Path(arguments.output)
    names = ("report.md", "report.html", "fitted.usda", "fitted.xml")
    if writes():
        check_outputs([folder / name for name in names], [arguments.scene], force=arguments.force, make_folder=True)
    with joined([arguments.data, *scene_files(arguments.scene)]) as ranks:
        fit = _fitted(arguments)
        lines = [] if ranks is None else ranks.summary()
        if ranks is None or ranks.first:
            with alone():
                print(fit)
                for path in fit.save(folder):
                    print(f"wrote {path}")
                print("\n".join(lines), end="\n" if lines else "")
    return 0


def _fitted(arguments: argparse.Namespace) -> IdentifiedScene:
    return identify(
        arguments.data,
        arguments.scene,
        [_parameter(text) for text in arguments.parameter],
        noise={n: _number(v, n) for n, v in map(_pair, arguments.noise)} or None,
        units=dict(map(_pair, arguments.units)),
        samples=arguments.samples,
        start=arguments.start,
        softening=[_number(part, "--softening") for part in arguments.softening.split(",")],
        impacts=arguments.impacts,
        substeps=arguments.substeps,
        validation=arguments.validation,
        seed=arguments.seed,
        iterations=arguments.iterations,
        threads=arguments.threads,
        spread=arguments.spread,
        bootstrap=arguments.bootstrap,
        folds=arguments.folds,
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    if not equals:
        raise InputError(f"{text!r}: write CHANNEL=VALUE")
    return name, value


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what}: {text!r} is not a number") from None


def _parameter(text: str) -> Parameter:
    """KEY[i]=LOWER:UPPER, both optional."""
    key, equals, bounds = text.partition("=")
    components = None
    if key.endswith("]"):
        key, _, place = key[:-1].rpartition("[")
        components = [int(_number(place, text))]
    if not equals:
        return Parameter(key, components)
    low, colon, high = bounds.partition(":")
    if not colon:
        raise InputError(f"{text!r}: write bounds as LOWER:UPPER")
    return Parameter(key, components, lower=_number(low, text), upper=_number(high, text))
