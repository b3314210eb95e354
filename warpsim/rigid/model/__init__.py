"""Models: topology and parameters on a device, compiled from a `Scene`; states, controls and intermediates."""
