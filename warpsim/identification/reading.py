"""Recordings from files, in a plain format.

`.npz`: `lengths` (samples of each recording), `rate` (Hz, one number or one per recording) or `times` (all samples, s,
each recording from its own zero or not), optionally `names`, `controls`, and one array per channel, all samples of all
recordings one after another. "states" stands for "q" and "qd" side by side.

`.csv`: one line per sample, with the columns `recording`, `time` and `CHANNEL[i]` (`q[0]`, `joint:elbow[0]`,
`controls[0]` …); empty cells were not measured.

`.h5` and `.hdf5`: the arrays of an `.npz` as datasets of the root; `.parquet`: the columns of a `.csv`, nulls were not
measured. `.mcap`: see `warpsim.identification.mcap_reading`. They need the extra `data` (h5py, pyarrow, mcap).

`.bag` files and folders: ROS bags, see `warpsim.identification.rosbag_reading`. They need the extra `ros` (rosbags).
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, cast

import numpy as np

from warpsim.core.errors import InputError
from warpsim.core.registry import provided
from warpsim.identification.mcap_reading import read_mcap
from warpsim.identification.recordings import Recording, in_si
from warpsim.identification.rosbag_reading import RosLibrary, bags_in, is_bag, read_bag

_RESERVED = ("lengths", "rate", "times", "names", "controls", "q0", "qd0", "format")


def read_recordings(path: str | PathLike[str], *, units: Mapping[str, str] | None = None) -> list[Recording]:
    """Reads a data set; `identify` looks it through.

    Args:
        path: `.npz`, `.csv`, `.h5`, `.hdf5`, `.parquet`, `.mcap` or `.bag`, in the formats above; a folder: ROS bags.
        units: Of channels that are not in SI and radians, e.g. {"joint:elbow": "deg"}.
    """
    file = Path(fspath(path))
    if file.is_dir() or is_bag(file):
        found = bags_in(file)
        library = _ros_library(file)
        return [read_bag(bag, library, units or {}) for bag in found]
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    arrays = {".npz": _npz, ".h5": _hdf5, ".hdf5": _hdf5}
    tables = {".csv": _csv, ".parquet": _parquet}
    if file.suffix in arrays:
        return _from_arrays(file, _opened(file, arrays[file.suffix]), units or {})
    if file.suffix in tables:
        return _from_table(file, _opened(file, tables[file.suffix]), units or {})
    if file.suffix == ".mcap":
        make_reader, error = _reader("mcap_reader", "mcap", file), cast("type[Exception]", provided("mcap_error"))
        return read_mcap(file, make_reader, error, units or {})
    raise InputError(
        f"{file}: recordings are read from {', '.join((*arrays, *tables, '.mcap', '.bag'))}; see "
        "docs/identification.md for the formats"
    )


def _opened(file: Path, read: Callable[[Path], Any]) -> Any:
    """What a file holds; a file that is none of its kind is an error of the user's."""
    try:
        return read(file)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{file}: not a readable {file.suffix} file: {error}") from None


def _reader(name: str, library: str, file: Path, extra: str = "data") -> Callable[..., Any]:
    """What a library reads with that is needed for one kind of file only."""
    try:
        return provided(name)
    except ModuleNotFoundError:
        kind = f"{file.suffix} files" if file.is_file() else "ROS bags"
        raise InputError(f'{file}: {kind} are read with {library}: pip install "warpsim[{extra}]"') from None


def _ros_library(file: Path) -> RosLibrary:
    reader = _reader("rosbag_reader", "rosbags", file, "ros")
    stores: Any = provided("rosbag_stores")
    types = provided("rosbag_typestore")(stores.ROS2_HUMBLE)
    return RosLibrary(reader, cast("type[Exception]", provided("rosbag_error")), types)


def _npz(file: Path) -> dict[str, np.ndarray]:
    with np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _hdf5(file: Path) -> dict[str, np.ndarray]:
    with _reader("open_hdf5", "h5py", file)(file, "r") as opened:
        made = {name: np.asarray(item) for name, item in opened.items() if hasattr(item, "dtype")}  # not its groups
    if "names" in made:
        made["names"] = np.array([n.decode() if isinstance(n, bytes) else str(n) for n in made["names"].tolist()])
    return made


def _csv(file: Path) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.reader(opened))


def _parquet(file: Path) -> list[list[str]]:
    table = _reader("read_parquet", "pyarrow", file)(file)
    columns = [["" if cell is None else str(cell) for cell in column.to_pylist()] for column in table.columns]
    return [list(table.column_names), *(list(line) for line in zip(*columns, strict=True))]


def _from_arrays(file: Path, arrays: Mapping[str, np.ndarray], units: Mapping[str, str]) -> list[Recording]:
    if "lengths" not in arrays or not {"rate", "times"} & set(arrays):
        raise InputError(f"{file}: {file.suffix} recordings have `lengths`, and `rate` or `times`")
    lengths = _lengths(file, arrays["lengths"])
    total, count = int(lengths.sum()), len(lengths)
    raw = {n: a for n, a in arrays.items() if n not in _RESERVED and a.ndim >= 1 and len(a) == total and total != count}
    if not raw:
        raise InputError(f"{file}: no channel has one sample for each of the {total} samples that `lengths` adds up to")
    channels = in_si(raw, units)
    ends = np.cumsum(lengths)
    rates = np.ravel(arrays.get("rate", np.nan))
    if "times" not in arrays and (
        len(rates) not in (1, count) or rates.dtype.kind not in "iuf" or not (rates > 0).all()
    ):
        raise InputError(f"{file}: `rate` is {rates}; give samples per second, one number or one of each recording")
    rates = np.broadcast_to(rates, (count,))
    names = [str(n) for n in arrays["names"]] if "names" in arrays else [f"recording {i}" for i in range(count)]
    made = []
    for i, (start, stop) in enumerate(zip(ends - lengths, ends, strict=True)):
        times = arrays["times"][start:stop] if "times" in arrays else np.arange(stop - start) / rates[i]
        controls = arrays["controls"][start:stop] if "controls" in arrays else None
        cut = {n: a[start:stop] for n, a in channels.items()}
        q0, qd0 = (_start(arrays, name, i, count) for name in ("q0", "qd0"))
        made.append(Recording(names[i], times, cut, controls, q0, qd0))
    return made


def _lengths(file: Path, given: np.ndarray) -> np.ndarray:
    """(recordings,) samples of each."""
    numbers = np.ravel(given)
    if numbers.dtype.kind not in "iuf" or not len(numbers) or not (numbers >= 0).all() or (numbers % 1 != 0).any():
        raise InputError(f"{file}: `lengths` is {numbers}; give the number of samples of each recording")
    return numbers.astype(int)


def _start(arrays: Mapping[str, np.ndarray], name: str, place: int, count: int) -> np.ndarray | None:
    """A recording's own initial state, where the file has one for each."""
    if name not in arrays:
        return None
    if len(arrays[name]) != count:
        raise InputError(f"{name}: {len(arrays[name])} samples for {count} recordings")
    return arrays[name][place]


def _from_table(file: Path, table: list[list[str]], units: Mapping[str, str]) -> list[Recording]:
    if not table or not {"recording", "time"} <= set(table[0]):
        raise InputError(f"{file}: the first line must name the columns, `recording` and `time` among them")
    header, lines = table[0], table[1:]
    columns: dict[str, list[int]] = {}
    for place, title in enumerate(header):
        if title not in ("recording", "time"):
            columns.setdefault(title.partition("[")[0], []).append(place)
    at_name, at_time = header.index("recording"), header.index("time")
    by_name: dict[str, list[list[str]]] = {}
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise InputError(f"{file}, line {number}: {len(line)} cells, the header has {len(header)}")
        by_name.setdefault(line[at_name], []).append(line)
    return [_of_lines(file, name, lines, at_time, columns, units) for name, lines in by_name.items()]


def _of_lines(
    file: Path,
    name: str,
    lines: list[list[str]],
    at_time: int,
    columns: Mapping[str, list[int]],
    units: Mapping[str, str],
) -> Recording:
    def numbers(place: int) -> np.ndarray:
        made = np.full(len(lines), np.nan)
        for at, line in enumerate(lines):
            try:
                made[at] = float(line[place]) if line[place].strip() else np.nan
            except ValueError:
                raise InputError(f"{file}, recording {name!r}, sample {at}: {line[place]!r} is no number") from None
        return made

    found = {channel: np.stack([numbers(p) for p in places], -1) for channel, places in columns.items()}
    controls = found.pop("controls", None)
    return Recording(name, numbers(at_time), in_si(found, {n: u for n, u in units.items() if n in found}), controls)
