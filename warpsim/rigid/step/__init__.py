"""One time step by each integrator, as a `Program` of the tape; what a state looks like from outside."""
