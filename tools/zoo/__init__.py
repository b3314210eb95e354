"""Robots nobody tuned for: contacts, accelerations, motions and gradients of a folder of MJCF files against MuJoCo."""
