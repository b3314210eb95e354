"""Rigid bodies: models, what a step reads and writes, dynamics, constraints, queries, sensors, the step itself."""
