"""USD stages ⇄ scenes: read, author, write motion back."""
