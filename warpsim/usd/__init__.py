"""USD stages ⇄ scenes: read, author, write motion back."""

from warpsim.usd.schema import register

register()
