"""Whether to believe it: `gradcheck`, `validity`, `panel`, `records`."""
