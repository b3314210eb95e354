"""Collision: signed distances, contact generation and distance queries, all differentiable."""
