"""The command line: `main`, and one file of `commands` for each command."""
