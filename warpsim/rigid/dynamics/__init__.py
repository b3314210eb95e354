"""Stages of articulated motion: kinematics, velocities, forces, mass matrix, accelerations, integration."""
