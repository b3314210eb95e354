"""Policies that run inside a step's kernels: small networks of the state, evaluated in the captured segment."""
