"""The gallery has every example: what its page shows, and a picture of it."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tools import make_gallery

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (PROJECT / "examples").glob("*.py"))


def test_every_example_has_a_page():
    assert sorted(make_gallery.SHOTS) == EXAMPLES
    assert sorted(path.stem for path in make_gallery.PACKS.iterdir()) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_pages_have_a_motion_and_pictures(name):
    block = zlib.decompress((make_gallery.PACKS / f"{name}.bin").read_bytes(), -15)
    header = json.loads(block[4 : 4 + int.from_bytes(block[:4], "little")])
    assert max(take["frames"] for take in header["takes"]) > 20
    assert header["drawables"]
    picture = Image.open(make_gallery.IMAGES / "gallery" / "examples" / f"{name}.jpg")
    assert picture.size == make_gallery.SIZE
    assert len(np.unique(np.asarray(picture).reshape(-1, 3), axis=0)) > 1000  # something is drawn


def test_it_stays_small():
    files = [*make_gallery.PACKS.iterdir(), *(make_gallery.IMAGES / "gallery").rglob("*.*")]
    assert sum(path.stat().st_size for path in files if path.is_file()) < 6e6
