"""`identify`: recordings and a scene in, values with intervals out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import torch

from warpsim.core.errors import InputError, whole_number
from warpsim.identification.fitting import Fitting, Prepared
from warpsim.identification.gauss_newton import Setting
from warpsim.identification.gradient_fit import METHODS
from warpsim.identification.grid import compared_channels, lay_out
from warpsim.identification.outcome import IdentifiedScene
from warpsim.identification.parameter import BoundParameter, Parameter
from warpsim.identification.plausible import check_falls, checked_coordinates, split_states, starts_inside
from warpsim.identification.prediction import Contacts, Predictor, substeps_for
from warpsim.identification.reading import read_recordings
from warpsim.identification.recordings import Recording, Recordings, checked
from warpsim.identification.resampling import bootstrap as resampled
from warpsim.identification.resampling import cross_validate
from warpsim.identification.robust import check_robust
from warpsim.identification.starts import STARTS, start_moves
from warpsim.identification.uncertainty import clustered, of_resamples
from warpsim.identification.windows import Windows, check_windows, cut
from warpsim.scene import Scene
from warpsim.sim.simulator import Simulator

HORIZONS = (0.3, 0.55)
"""Shares of the samples that are fitted first, one after the other: over a short time a loss has one valley."""


def identify(
    data: str | PathLike[str] | Sequence[Recording],
    scene: str | PathLike[str] | Scene,
    parameters: Sequence[Parameter | str],
    *,
    noise: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    samples: int | None = None,
    start: Literal["measured", "smoothed", "fitted"] = "measured",
    start_samples: int = 10,
    position_noise: Any = None,
    velocity_noise: Any = None,
    robust: float | None = 3.0,
    softening: float | Sequence[float] = 0.0,
    impacts: bool | None = None,
    substeps: int | None = None,
    horizons: Sequence[float] = HORIZONS,
    batch: int | None = None,
    windows: Windows | int | None = None,
    iterations: int = 10,
    tolerance: float = 1e-4,
    method: Literal["gauss_newton", "adam", "lbfgs"] = "gauss_newton",
    validation: float | Sequence[int] = 0.25,
    seed: int = 0,
    check: bool = True,
    threads: int = 1,
    difference: float = 1e-3,
    spread: float = 0.0,
    bootstrap: int = 0,
    folds: int = 0,
) -> IdentifiedScene:
    """Finds the values with which a scene moves as it was measured, and how sure they are.

    Args:
        data: A file (see `warpsim.identification.reading`), or recordings.
        scene: A USD, MJCF or URDF file, or a `Scene`.
        parameters: What may vary; a key alone stands for `Parameter(key)`.
        noise: Standard deviation by channel, SI; see `compared_channels`.
        units: Of channels in a file that are not SI.
        samples: Compared ones, from the start; None: all.
        start: Of rollouts: the first sample ("measured"), what the first few say ("smoothed"), or fitted with all else.
        start_samples: How many samples "smoothed" looks at.
        position_noise: Standard deviation of measured initial coordinates; None: the noise of "q".
        velocity_noise: Of measured initial velocities; None: as of differences of two samples of "q".
        robust: Standard deviations up to which a sample counts squared, beyond by its distance; None: always squared.
        softening: m by which contacts are softened (see `Simulator`); several: a schedule, as (0.008, 0.004, 0.0).
        impacts: Whether bounces are impacts; None: as in the scene.
        substeps: Steps per sample; None: about as the scene's time step says.
        horizons: Shares of the samples that are fitted first.
        batch: Recordings that every stage but the last is fitted with, drawn anew for each; None: all.
        windows: Recordings are fitted in parts, each with its own start; a number: samples of each. None: as a whole.
        iterations: At most, per stage.
        tolerance: Share of the loss below which an iteration's gain ends the last stage.
        method: "gauss_newton" (Jacobians by differences in worlds), or "adam", "lbfgs" on the exact gradient.
        validation: Share of the recordings, or their places, that are held out of the fit.
        seed: Of the choice of these.
        check: Whether the loss's exact gradient is compared with differences first.
        threads: That share the worlds.
        difference: Step of the Jacobian's differences, in units of the parameters' scales.
        spread: Size of a cloud, in units of the parameters' scales, over which a last stage averages; 0: none.
        bootstrap: Fits of resampled recordings that intervals are made from; 0: from the scores (see `Uncertainty`).
        folds: Into how many parts the fitted recordings are divided for cross validation; 0: none.

    Returns:
        Values, intervals, errors on held-out recordings, notes; see `IdentifiedScene`.

    Raises:
        InputError: The data cannot be what they are said to be; says where.
    """
    began, width = time.process_time(), _checked_choices(start, method, robust)
    look: dict[str, Any] = dict(noise=noise, units=units, samples=samples, substeps=substeps, threads=threads)
    ready = prepare(data, scene, parameters, validation=validation, seed=seed, **look)
    contacts = [Contacts(float(s), impacts) for s in np.atleast_1d(np.asarray(softening, dtype=np.float64))]
    raw, parts = ready.predictor.grid, _windows(windows, ready.predictor.samples, start)
    settings = stages(parts.samples, contacts, horizons, iterations, tolerance, spread, batch, parts.schedule)
    pieces = None if windows is None else cut(ready.predictor, parts, contacts[0], guess=start == "fitted")
    moves = start_moves(ready.predictor, position_noise, velocity_noise)
    fitting = Fitting(ready, raw, pieces, settings, moves, start, start_samples, method, width, difference)
    return _outcome(fitting, scene, check=check, bootstrap=bootstrap, folds=folds, seed=seed, began=began)


def _outcome(
    fitting: Fitting, source: Any, *, check: bool, bootstrap: int, folds: int, seed: int, began: float
) -> IdentifiedScene:
    """Fits, from `began` on the processor's clock, and says what came out."""
    ready, predictor, last = fitting.ready, fitting.ready.predictor, fitting.settings[-1]
    solver, checked_loss = fitting.solve(ready.train, check=check)
    normal = solver.linearize(last)
    fitted = fitting.with_fitted_starts(solver)
    names = [name for parameter in predictor.shared for name in parameter.names]
    sure = clustered(solver, normal, names)
    if bootstrap:
        sure = of_resamples(sure, solver, resampled(fitting, bootstrap, seed))
    spent = predictor.rollouts
    errors = fitting.judge(solver.x, {"train": ready.train, "held out": ready.held_out})
    validated = cross_validate(fitting, folds, seed) if folds else ()
    predictor.grid = fitted
    return IdentifiedScene(
        scene=ready.sim.scene,
        source=source,
        parameters=tuple(predictor.shared),
        names=tuple(names),
        x=solver.x.clone(),
        uncertainty=sure,
        errors=errors,
        cross_validation=validated,
        recordings=ready.recordings,
        train=tuple(ready.train.tolist()),
        held_out=tuple(ready.held_out.tolist()),
        notes=fitted.notes,
        loss=normal.loss,
        loss_check=checked_loss,
        rollouts=spent,
        seconds=time.process_time() - began,
        contacts=last.contacts,
        predictor=predictor,
    )


def _checked_choices(start: str, method: str, robust: float | None) -> float:
    """The width of the loss's quadratic part, if all three are known choices."""
    if start not in STARTS:
        raise InputError(f"start={start!r}; choose one of {', '.join(STARTS)}")
    if method not in ("gauss_newton", *METHODS):
        raise InputError(f"method={method!r}; choose gauss_newton, {', '.join(METHODS)}")
    return check_robust(robust)


def stages(
    samples: int,
    contacts: Sequence[Contacts],
    horizons: Sequence[float],
    iterations: int,
    tolerance: float,
    spread: float = 0.0,
    batch: int | None = None,
    continuity: Sequence[float | None] = (None,),
) -> list[Setting]:
    """Short horizons with the first kind of contacts, all samples with each kind in turn, predictions averaged.

    Windows that continue each other are whole from the beginning, and come closer to each other in the stages before
    the contacts change.
    """
    if not spread >= 0:
        raise InputError(f"spread={spread}: give 0 or more, in units of the parameters' scales")
    if batch is not None and batch < 1:
        raise InputError(f"batch={batch}: give 1 recording or more, or None for all")
    *looser, tight = continuity
    short = [] if tight else [max(2, int(np.ceil(share * samples))) for share in horizons]
    loose = max(tolerance, 3e-3)
    first = [Setting(n, contacts[0], iterations, loose) for n in dict.fromkeys(short) if n < samples]
    first += [Setting(samples, contacts[0], iterations, loose, continuity=apart) for apart in looser]
    whole = [Setting(samples, kind, iterations, tolerance, continuity=tight) for kind in contacts]
    averaged = [replace(whole[-1], spread=spread)] if spread else []
    *earlier, last = *first, *whole, *averaged
    return [*(replace(setting, batch=batch) for setting in earlier), last]


def _windows(given: Windows | int | None, samples: int, start: str) -> Windows:
    """How recordings of so many samples are cut; one window of all of them where they are not."""
    if given is None:
        return Windows(samples)
    windows = given if isinstance(given, Windows) else Windows(whole_number("windows", given))
    check_windows(windows, samples, start)
    return windows


def prepare(
    data: str | PathLike[str] | Sequence[Recording],
    scene: str | PathLike[str] | Scene,
    parameters: Sequence[Parameter | str],
    *,
    noise: Mapping[str, Any] | None,
    units: Mapping[str, str] | None,
    samples: int | None,
    substeps: int | None,
    validation: float | Sequence[int],
    seed: int,
    threads: int,
) -> Prepared:
    """Reads, looks through and lays out; arguments as of `identify`."""
    if not parameters:
        raise InputError("nothing may vary: give at least one parameter")
    given = read_recordings(data, units=units) if isinstance(data, str | PathLike) else list(data)
    sim = Simulator(scene)
    found = checked([split_states(recording, sim) for recording in given])
    if samples is not None:
        found = found.first_samples(samples)
    found = _without_inside(checked_coordinates(found, sim), sim)
    grid = lay_out(found, sim)
    bound = [BoundParameter(Parameter(p) if isinstance(p, str) else p, sim) for p in parameters]
    if all(p.spec.per_recording for p in bound):
        raise InputError("all parameters are per recording; at least one must be shared")
    predictor = Predictor(
        scene,
        sim,
        grid,
        compared_channels(grid, sim, noise),
        bound,
        substeps=substeps_for(grid, sim, substeps),
        threads=threads,
    )
    train, held_out = _split(len(found), validation, seed)
    return Prepared(sim, predictor, found, train, held_out)


def _without_inside(recordings: Recordings, sim: Simulator) -> Recordings:
    """Without recordings that start with bodies inside each other."""
    grid = lay_out(recordings, sim)
    check_falls(grid, sim)
    names = [recording.name for recording in recordings]
    notes = starts_inside(sim.with_worlds(len(recordings)), grid.q, names)
    bad = {note.partition(",")[0] for note in notes}
    kept = tuple(recording for recording in recordings if recording.name not in bad)
    if not kept:
        raise InputError("every recording starts with bodies inside each other; check units and the scene's sizes")
    return Recordings(kept, (*recordings.notes, *notes))


def _split(count: int, validation: float | Sequence[int], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(validation, int | float):
        if not 0 <= validation < 1:
            raise InputError(f"validation={validation}: give a share from 0 to below 1, or places")
        order = np.random.default_rng(seed).permutation(count)
        held = np.sort(order[: int(validation * count)])
    else:
        held = np.asarray(list(validation), dtype=int)
        if len(held) and not (0 <= held.min() and held.max() < count):
            raise InputError(f"validation: places must be from 0 to {count - 1}")
    train = np.setdiff1d(np.arange(count), held)
    if not len(train):
        raise InputError("no recording is left to fit to; hold fewer out")
    return torch.tensor(train), torch.tensor(held, dtype=torch.long)
