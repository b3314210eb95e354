"""The commands of `warpsim`, one file each: `add(parsers)` describes it, `run(arguments)` does it."""
