"""Versions in a record: those of the installed packages, read without parsing their whole descriptions."""

from __future__ import annotations

import dataclasses
import email
import hashlib
import importlib.metadata
import json

import numpy as np
import pytest

from warpsim.check.records import fingerprint
from warpsim.check.records.fingerprint import scene_hash, versions
from warpsim.check.records.plain import encode
from warpsim.matter import MatterDescription
from warpsim.scene import Body, Scene


def test_versions_are_those_of_the_packages():
    found = versions()
    for name in ("warp-lang", "torch", "numpy", "usd-core"):
        assert found[name] == importlib.metadata.version(name)
    found["numpy"] = "0"
    assert versions()["numpy"] != "0"  # a copy


def test_they_are_read_without_a_parser_of_mail(monkeypatch):
    """Which took longer than a short rollout: descriptions of packages are long."""
    monkeypatch.setattr(email, "message_from_string", lambda text: pytest.fail("the whole description was parsed"))
    fingerprint._versions.cache_clear()
    assert versions()["numpy"]


def test_a_package_that_is_not_there_says_so(monkeypatch):
    def missing(name: str):
        raise importlib.metadata.PackageNotFoundError(name)

    fingerprint._versions.cache_clear()
    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert versions()["torch"] == "not installed as a package"
    fingerprint._versions.cache_clear()


def test_a_scene_s_hash_is_of_its_bodies_its_matters_and_no_names():
    def made(mass: float = 1.0, rate: float | None = None, **fields) -> str:
        scene = Scene(bodies=[Body("a", mass=mass)], **fields)
        if rate is not None:
            scene.matters.append(MatterDescription("decay", "tea", parameters={"rate": np.array(rate)}))
        return scene_hash(scene)

    assert made() == made(name="another") and made() != made(mass=2.0)
    assert made(rate=1.0) == made(rate=1.0) != made() and made(rate=1.0) != made(rate=2.0)
    plain = {
        f.name: getattr(Scene(), f.name)
        for f in dataclasses.fields(Scene)
        if f.name not in ("ledger", "sources", "name")
    }
    del plain["matters"]  # records of scenes without any are older than matters
    assert scene_hash(Scene()) == hashlib.sha256(json.dumps(encode(plain), sort_keys=True).encode()).hexdigest()
