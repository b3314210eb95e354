"""The foundation: errors, number types, spatial maths, quaternions, names, random numbers, stages, files, locks.

Nothing here knows of scenes or bodies.
"""
