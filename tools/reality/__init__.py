"""How well simulators predict measured motions: the cube-toss protocol."""
