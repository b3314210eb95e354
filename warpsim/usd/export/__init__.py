"""Scene → USD."""

from warpsim.usd.export.scene import export_scene

__all__ = ["export_scene"]
