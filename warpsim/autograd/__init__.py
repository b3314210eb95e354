"""Rollouts, steps and observations as nodes of torch's graph; exchange of tensors without copies."""
