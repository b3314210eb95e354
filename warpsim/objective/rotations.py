"""Rotations in torch: unit quaternions (…, 4), w first; derivatives are finite everywhere but at a half turn."""

from __future__ import annotations

import torch

from warpsim.tangent import quat_product


def conjugate(q: torch.Tensor) -> torch.Tensor:
    """The inverse of a unit quaternion."""
    return torch.cat([q[..., :1], -q[..., 1:]], -1)


def rotate(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Vectors (…, 3) turned by q: v + 2w(u × v) + 2u × (u × v)."""
    w, u = q[..., :1], q[..., 1:]
    u, v = torch.broadcast_tensors(u, v)
    first = torch.linalg.cross(u, v)
    return v + 2.0 * (w * first + torch.linalg.cross(u, first))


def rotation_vector(q: torch.Tensor) -> torch.Tensor:
    """(…, 3) rad: axis times angle, at most half a turn."""
    q = torch.where(q[..., :1] < 0, -q, q)
    w, u = q[..., :1], q[..., 1:]
    square = (u * u).sum(-1, keepdim=True)
    small = square < 1e-16
    sine = torch.sqrt(torch.where(small, torch.ones_like(square), square))
    return u * torch.where(small, 2.0 / w.clamp(min=0.5), 2.0 * torch.atan2(sine, w) / sine)


def turn_between(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(…, 3) rad: the rotation vector, in world axes, that turns a into b."""
    return rotation_vector(quat_product(b, conjugate(a)))


def interpolate(a: torch.Tensor, b: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """Between two rotations along the shortest way, `share` (…, 1) from 0 to 1; not differentiable at a half turn."""
    b = torch.where((a * b).sum(-1, keepdim=True) < 0, -b, b)
    cosine = (a * b).sum(-1, keepdim=True).clamp(-1.0, 1.0)
    angle = torch.acos(cosine)
    flat = angle < 1e-6
    sine = torch.sin(torch.where(flat, torch.ones_like(angle), angle))
    left = torch.where(flat, 1.0 - share, torch.sin((1.0 - share) * angle) / sine)
    right = torch.where(flat, share, torch.sin(share * angle) / sine)
    mixed = left * a + right * b
    return mixed / torch.linalg.vector_norm(mixed, dim=-1, keepdim=True)
