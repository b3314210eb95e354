"""The mesh cache is no authority: files that are damaged, empty, altered or somebody else's are made anew."""

from __future__ import annotations

import numpy as np
import pytest

from collision_meshes import cube, torus
from warpsim.geometry.decomposition import decompose
from warpsim.geometry.disk_cache import cache_directory, load_arrays, store_arrays
from warpsim.geometry.mesh_sdf import mesh_sdf
from warpsim.scene import Decomposition

RESOLUTION = 8


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPSIM_CACHE", str(tmp_path))
    return tmp_path


def altered(path) -> None:
    """Right name, right arrays, other numbers, the old checksum."""
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["coefficients"] = arrays["coefficients"] + 0.07
    np.savez(path, **arrays)


def unsigned(path) -> None:
    """As versions without checksums wrote it, with other numbers."""
    with np.load(path) as stored:
        arrays = {name: array for name, array in stored.items() if name != "checksum"}
    arrays["coefficients"] = arrays["coefficients"] + 0.07
    np.savez(path, **arrays)


def swapped(path) -> None:
    """The whole file of another mesh."""
    other = mesh_sdf(cube((0.1, 0.1, 0.1)), RESOLUTION)
    (source,) = [p for p in path.parent.glob("*.npz") if p != path]
    assert other.coefficients.size
    path.write_bytes(source.read_bytes())


def pickled(path) -> None:
    np.savez(path, coefficients=np.array([{"a": 1}], dtype=object), origin=np.zeros(3), spacing=np.array(1.0))


DAMAGE = {
    "altered": altered,
    "unsigned": unsigned,
    "swapped": swapped,
    "pickled": pickled,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("not an archive"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "bytes changed": lambda path: path.write_bytes(_with_noise(path.read_bytes())),
    "one array": lambda path: np.save(path.open("wb"), np.zeros(3)),
    "folder": lambda path: (path.unlink(), path.mkdir()),
}


def _with_noise(data: bytes) -> bytes:
    noise = np.random.default_rng(0)
    changed = bytearray(data)
    for place in noise.integers(0, len(data), 64):
        changed[place] ^= 255
    return bytes(changed)


@pytest.mark.parametrize("name", DAMAGE)
def test_a_bad_file_is_rebuilt(cache, name):
    good = mesh_sdf(cube(), RESOLUTION)
    (path,) = (cache / "sdf").glob("*.npz")
    DAMAGE[name](path)
    if name == "folder":  # it cannot even be replaced
        assert load_arrays("sdf", path.stem, ("coefficients",)) is None
        return
    again = mesh_sdf(cube(), RESOLUTION)
    np.testing.assert_array_equal(again.coefficients, good.coefficients)
    np.testing.assert_array_equal(again.origin, good.origin)
    with np.load(path) as stored:
        np.testing.assert_array_equal(stored["coefficients"], good.coefficients, err_msg="the file is still bad")


def test_any_flipped_byte_is_noticed(cache):
    """Whatever the place: the numbers come back right, or not at all."""
    numbers = np.random.default_rng(1).normal(size=40)
    store_arrays("kind", "key", numbers=numbers)
    path = cache_directory("kind") / "key.npz"
    data = path.read_bytes()
    refused = 0
    places = range(0, len(data), 3)
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(bytes(changed))
        found = load_arrays("kind", "key", ("numbers",))
        refused += found is None
        assert found is None or np.array_equal(found["numbers"], numbers)
    assert refused > 0.5 * len(places)


def test_a_good_file_is_used(cache, monkeypatch):
    mesh_sdf(cube(), RESOLUTION)
    monkeypatch.setattr("warpsim.geometry.mesh_sdf._build", None)
    assert mesh_sdf(cube(), RESOLUTION).coefficients.size


def test_convex_pieces_are_checked_too(cache):
    mesh, settings = torus(around=12, across=6), Decomposition(tolerance=0.1)
    good = decompose(mesh.vertices, mesh.faces, settings, name="ring")
    for path in cache.rglob("*.npz"):
        with np.load(path) as stored:
            arrays = {n: a * 1.5 if a.dtype.kind == "f" else a for n, a in stored.items()}
        np.savez(path, **arrays)
    again = decompose(mesh.vertices, mesh.faces, settings, name="ring")
    for a, b in zip(good.vertices, again.vertices, strict=True):
        np.testing.assert_array_equal(a, b)
