"""A page that follows a running simulation: a server on the loopback, states out, wishes of the viewer in."""
