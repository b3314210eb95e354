"""Pictures without a graphics driver: a small ray caster in Warp kernels."""

from warpsim.view.items.camera import Camera, fit_camera, look_at
from warpsim.view.raycast.frames import render_rollout, render_stage
from warpsim.view.raycast.images import contact_sheet, write_gif, write_png
from warpsim.view.raycast.times import frame_times

__all__ = [
    "Camera",
    "contact_sheet",
    "fit_camera",
    "frame_times",
    "look_at",
    "render_rollout",
    "render_stage",
    "write_gif",
    "write_png",
]
