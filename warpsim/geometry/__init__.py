"""Meshes on the host: hulls, decomposition, signed distance grids, mass, audits, and the cache of what they cost."""
