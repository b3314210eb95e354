"""Arrays of a record: digits where they are few, bytes where they are many, and every bit of both."""

from __future__ import annotations

import json

import numpy as np
import pytest

from warpsim.check.records.plain import decode, encode


def test_few_numbers_are_digits_and_many_are_bytes():
    assert encode(np.zeros(256, dtype=np.uint8))["data"] == [0] * 256
    assert encode(np.zeros((3, 100), dtype=np.uint8)) == {"array": "uint8", "shape": [3, 100], "base64": "AAAA" * 100}
    one = encode(np.full(300, 1, dtype=">i4"))  # bytes are little-endian whatever the array's are
    assert one["base64"].startswith("AQAAAAEAAAAB")


@pytest.mark.parametrize("count", [5, 300])
@pytest.mark.parametrize("kind", ["float64", "float32", "int32", "int64", "bool"])
def test_bits_survive(rng, kind, count):
    given = (100.0 * rng.standard_normal((2, count, 3))).astype(kind)[:, ::2]  # not contiguous
    if given.dtype.kind == "f":
        given[0, 0] = np.nan, np.inf, -np.inf
    read = decode(json.loads(json.dumps(encode(given))))
    assert read.dtype == given.dtype and read.shape == given.shape
    assert np.ascontiguousarray(given).tobytes() == read.tobytes()


@pytest.mark.parametrize("spoilt", ["AAA", "AAAA!AAA", "AAAA"])
def test_damaged_bytes_are_refused(spoilt):
    with pytest.raises(ValueError):
        decode({"array": "float64", "shape": [300], "base64": spoilt})
