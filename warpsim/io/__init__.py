"""Scenes from files and back: `load`, `usd`, `mjcf`."""
