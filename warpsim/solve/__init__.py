"""The convex problem of a step, knowing no bodies: rows, cones, Newton's method, sparse factors.

a* = argmin ½ (a − a₀)ᵀ M (a − a₀) + s(J a − aref)
"""
