"""Measurements of joints, tendons, actuators, frames, inertial units and contacts, as differentiable outputs."""
