"""A compiled scene and what is made from it once: programs, tapes, observers, room for contacts."""
