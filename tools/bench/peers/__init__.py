"""Other simulators on the cases of `tools.bench`, each in an environment of its own."""
