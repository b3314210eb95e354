"""Rigid bodies and other matters as one compiled scene, stepped together."""
