"""Cloth, soft bodies and cables: energies of their elements, the implicit step, its adjoint, and a `Program` of it."""
