"""Looking at scenes and motions."""
