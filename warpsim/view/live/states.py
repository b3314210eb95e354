"""States as the page reads them: little endian, one block per frame.

float64 time · uint32 contacts · uint32 zero · float32 positions and quaternions (worlds, bodies, 7, w first) ·
float32 points of each world in the order of the page's drawables · float32 contacts (n, 7): world, point, force.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsim.view.page.content import Page, RigidDrawable, Take


def pack_states(time: float, takes: Sequence[Take], page: Page, frame: int = 0) -> bytes:
    """A frame of each world's take.

    Args:
        time: s.
        takes: One for each world.
        page: Whose bodies and drawables they are.
        frame: Which.
    """
    soft = [drawable.path for drawable in page.drawables if not isinstance(drawable, RigidDrawable)]
    poses, points, contacts = [], [], []
    for world, take in enumerate(takes):
        poses.append(np.concatenate([take.positions[frame], take.rotations[frame]], axis=1))
        points += [take.points[path][frame] for path in soft if path in take.points]
        if take.contacts is not None:
            last = take.contacts[frame]
            contacts.append(np.column_stack([np.full(len(last.points), world), last.points, last.forces]))
    touching = np.concatenate(contacts) if contacts else np.zeros((0, 7))
    parts = [np.array([len(touching), 0], dtype="<u4").tobytes()]
    parts += [np.asarray(part, dtype="<f4").tobytes() for part in (np.array(poses), *points, touching)]
    return np.array([time], dtype="<f8").tobytes() + b"".join(parts)
