"""Rotations in torch: unit quaternions (…, 4), w first; derivatives are finite everywhere but at a half turn."""

from __future__ import annotations
