"""What commands take, a file each: read before a command is loaded, so that `--help` and mistakes answer at once."""
