"""Kernels compiled for GPUs that are not at hand: whether they compile, and what they take."""
