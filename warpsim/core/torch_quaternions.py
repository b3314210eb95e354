"""Quaternions (w, x, y, z) as torch tensors, (…, 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsim.core.loaded import Loaded

if TYPE_CHECKING:
    import torch
else:
    torch = Loaded("torch")


def quat_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of quaternions (…, 4), w first."""
    aw, av, bw, bv = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    w = aw * bw - (av * bv).sum(-1, keepdim=True)
    return torch.cat([w, aw * bv + bw * av + torch.linalg.cross(av, bv)], -1)


def quat_exponential(v: torch.Tensor) -> torch.Tensor:
    """Quaternion of a rotation vector (…, 3), rad."""
    half = v / 2
    angle = torch.linalg.vector_norm(half, dim=-1, keepdim=True)
    return torch.cat([torch.cos(angle), half * torch.sinc(angle / torch.pi)], -1)


def quat_logarithm(q: torch.Tensor) -> torch.Tensor:
    """Rotation vector (…, 3), rad, of a unit quaternion; the shorter way round, and smooth at no rotation."""
    w, v = q[..., :1], q[..., 1:]
    square = (v * v).sum(-1, keepdim=True)
    near = square < 1e-4 * w * w  # there 2·atan(t)/t, t = |v|/w, by its series; elsewhere a root with a derivative
    t2 = square / torch.where(near, w * w, 1.0)
    series = 2 * (1 - t2 / 3 + t2**2 / 5 - t2**3 / 7) / torch.where(near, w, 1.0)
    sine = torch.where(near, 1.0, square).sqrt()
    sign = torch.where(w < 0, -1.0, 1.0)
    return v * torch.where(near, series, 2 * sign * torch.atan2(sine, w.abs()) / sine)


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
