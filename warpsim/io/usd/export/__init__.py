"""Scene → USD."""

from warpsim.io.usd.export.scene import export_scene

__all__ = ["export_scene"]
