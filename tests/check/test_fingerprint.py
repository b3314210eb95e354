"""Versions in a record: those of the installed packages, read without parsing their whole descriptions."""

from __future__ import annotations

import email
import importlib.metadata

import pytest

from warpsim.check.records import fingerprint
from warpsim.check.records.fingerprint import versions


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
