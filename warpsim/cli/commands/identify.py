"""`warpsim identify`: values of a scene from recordings."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpsim.cli.commands.outputs import check_outputs
from warpsim.cli.commands.ranks import joined, writes
from warpsim.core.errors import InputError
from warpsim.identification import IdentifiedScene, Parameter, Windows, identify
from warpsim.io.scene_files import scene_files
from warpsim.parallel.ranks import alone


def run(arguments: argparse.Namespace) -> int:
    """Fits, prints, writes."""
    folder = Path(arguments.output)
    names = ("report.md", "report.html", "motion.html", "fitted.usda", "fitted.xml")
    if writes():
        check_outputs([folder / name for name in names], [arguments.scene], force=arguments.force, make_folder=True)
    with joined([arguments.data, *scene_files(arguments.scene)]) as ranks:
        fit = _fitted(arguments)
        lines = [] if ranks is None else ranks.summary()
        if ranks is None or ranks.first:
            with alone():
                written = fit.save(folder)  # before anything is printed, where a closed pipe may end it
                print(fit)
                for path in written:
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
        batch=arguments.batch,
        windows=_windows(arguments),
        threads=arguments.threads,
        spread=arguments.spread,
        bootstrap=arguments.bootstrap,
        folds=arguments.folds,
    )


def _windows(arguments: argparse.Namespace) -> Windows | None:
    continuity = [_number(part, "--continuity") for part in (arguments.continuity or "").split(",") if part]
    if arguments.windows is None:
        if arguments.stride or continuity:
            raise InputError("--stride and --continuity are of windows; give --windows, the samples of each")
        return None
    return Windows(arguments.windows, arguments.stride, continuity or None)


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
