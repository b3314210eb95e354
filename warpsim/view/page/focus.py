"""What a page's first view shows: the box that the ray caster's automatic camera is fitted around, too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.view.items.focus import Focus, ground_heights, with_context
from warpsim.view.items.item import PLANE
from warpsim.view.page.content import Page, RigidDrawable, Take

_FRAMES = 12
"""Of each take that are looked at."""
_TAKES = 4


def page_focus(page: Page) -> Focus:
    """Everything that moves in the first takes, what stands near it, and targets."""
    rigid = [drawable for drawable in page.drawables if isinstance(drawable, RigidDrawable) and drawable.visual]
    place = {body.path: number for number, body in enumerate(page.bodies)}
    clouds = [points for take in page.takes[:_TAKES] for points in _moving(rigid, take, place)]
    clouds += [target.positions for target in page.targets]
    items = [drawable.item for drawable in rigid if drawable.item.body is None]
    still = [item.corners() for item in items if item.kind != PLANE]
    if not clouds:
        clouds, still = still, []
    if not clouds:
        return Focus(np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 0.5]]))
    return with_context(np.concatenate(clouds), still, ground_heights(items))


def _moving(rigid: list[RigidDrawable], take: Take, place: dict[str, int]) -> Iterator[np.ndarray]:
    """(n, 3) m: corners of moving things over time."""
    frames = np.unique(np.linspace(0, len(take.times) - 1, _FRAMES).round().astype(int))
    turns = quat_to_matrix(take.rotations[frames]) if take.rotations.size else np.zeros((len(frames), 0, 3, 3))
    for drawable in rigid:
        if drawable.item.body is None:
            continue
        body = place[drawable.item.body]
        corners = drawable.item.corners()
        yield (corners @ np.swapaxes(turns[:, body], 1, 2) + take.positions[frames, body, None]).reshape(-1, 3)
    for points in take.points.values():
        cloud = np.asarray(points)[frames].reshape(-1, 3)
        yield np.stack([cloud.min(axis=0), cloud.max(axis=0)])
