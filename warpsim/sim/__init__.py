"""`Simulator`: what users hold. Controls, initial states, parameters, attributes, trajectories, Jacobians, policies."""
