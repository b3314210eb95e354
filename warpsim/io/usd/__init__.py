"""USD stages ⇄ scenes: read, author, write motion back."""

from warpsim.io.usd.schema import register

register()
