"""Small moves of a configuration: q ⊕ δ, and derivatives by δ, in MuJoCo's tangent space of nv numbers.

δ of a hinge or slide adds to its coordinate; of a ball joint it is a rotation vector in the body's frame, q ⊗ exp(δ);
of a free joint three meters in the world and then such a rotation vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsim.core.loaded import Loaded
from warpsim.core.torch_quaternions import quat_exponential, quat_logarithm, quat_product
from warpsim.rigid.model.topology import Layout

if TYPE_CHECKING:
    import torch
else:
    torch = Loaded("torch")


def tangent_pieces(layout: Layout) -> list[tuple[bool, slice, slice]]:
    """(whether it is a rotation, coordinates, dofs) of each piece of q."""
    parts = []
    for kind, q, d in zip(layout.joint_kinds, layout.joint_q.tolist(), layout.joint_dof.tolist(), strict=True):
        if kind == "free":
            parts += [(False, slice(q, q + 3), slice(d, d + 3)), (True, slice(q + 3, q + 7), slice(d + 3, d + 6))]
        elif kind == "ball":
            parts.append((True, slice(q, q + 4), slice(d, d + 3)))
        else:
            parts.append((False, slice(q, q + 1), slice(d, d + 1)))
    return parts


def shift(layout: Layout, q: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    """q ⊕ δ for q (…, nq) and δ (…, nv)."""
    moved = q.clone()
    for rotation, c, d in tangent_pieces(layout):
        if rotation:
            moved[..., c] = quat_product(q[..., c], quat_exponential(delta[..., d]))
        else:
            moved[..., c] = q[..., c] + delta[..., d]
    return moved


def difference(layout: Layout, q: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """δ (…, nv) with reference ⊕ δ = q, for coordinates (…, nq) that may be broadcast together; differentiable."""
    q, reference = torch.broadcast_tensors(q, reference)
    parts = []
    for rotation, c, _ in tangent_pieces(layout):
        if rotation:
            inverse = reference[..., c] * reference.new_tensor([1.0, -1.0, -1.0, -1.0])
            parts.append(quat_logarithm(quat_product(inverse, q[..., c])))
        else:
            parts.append(q[..., c] - reference[..., c])
    return torch.cat(parts, -1) if parts else q.new_zeros(*q.shape[:-1], 0)


def basis(layout: Layout, q: torch.Tensor) -> torch.Tensor:
    """E (…, nq, nv): derivative of q ⊕ δ by δ at δ = 0.

    A covector on coordinates becomes one on the tangent space by Eᵀ. Conversely, δ = P·(q′ − q) to first order, with
    the left inverse P = (EᵀE)⁻¹Eᵀ, which is Eᵀ with the rows of rotations times four: the columns of a quaternion's
    part are orthogonal and of length one half.
    """
    e = q.new_zeros(*q.shape, layout.nv)
    for rotation, c, d in tangent_pieces(layout):
        if rotation:
            for k in range(3):
                unit = torch.zeros_like(q[..., c])
                unit[..., 1 + k] = 0.5
                e[..., c, d.start + k] = quat_product(q[..., c], unit)
        else:
            for k in range(d.stop - d.start):
                e[..., c.start + k, d.start + k] = 1.0
    return e


def projection(layout: Layout, q: torch.Tensor) -> torch.Tensor:
    """P (…, nv, nq): the left inverse of `basis`, so that δ = P·(q′ − q) to first order near a unit q."""
    scale = q.new_ones(layout.nv)
    for rotation, _, d in tangent_pieces(layout):
        if rotation:
            scale[d] = 4.0
    return (basis(layout, q) * scale).transpose(-1, -2)


def _cross(v: torch.Tensor) -> torch.Tensor:
    """[v]× (…, 3, 3) of v (…, 3)."""
    x, y, z = v.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).unflatten(-1, (3, 3))


def _turn_derivatives(v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of q ⊗ exp(v) as a move from itself: by a move of q, exp(−[v]×), and by v, SO(3)'s right Jacobian; (…, 3, 3)."""
    square = (v * v).sum(-1)[..., None, None]
    near = square < 1e-4
    angle = torch.where(near, 1.0, square).sqrt()
    s2 = torch.where(near, square, 0.0)
    sine = torch.where(near, 1 - s2 / 6 + s2**2 / 120, torch.sin(angle) / angle)
    versine = torch.where(near, 0.5 - s2 / 24 + s2**2 / 720, (1 - torch.cos(angle)) / angle**2)
    rest = torch.where(near, 1 / 6 - s2 / 120 + s2**2 / 5040, (angle - torch.sin(angle)) / angle**3)
    k, one = _cross(v), torch.eye(3, dtype=v.dtype, device=v.device)
    k2 = k @ k
    return one - sine * k + versine * k2, one - versine * k + rest * k2


def move_derivatives(layout: Layout, step: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Derivatives (…, nv, nv) of the move q ⊕ step, as a tangent vector where it ends, by q and by step (…, nv)."""
    by_q = torch.eye(layout.nv, dtype=step.dtype, device=step.device).repeat(*step.shape[:-1], 1, 1)
    by_step = by_q.clone()
    for rotation, _, d in tangent_pieces(layout):
        if rotation:
            by_q[..., d, d], by_step[..., d, d] = _turn_derivatives(step[..., d])
    return by_q, by_step


class JointManifold:
    """The coordinates q of a model: a `warpsim.tape.manifold.Manifold`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def tangent_size(self, size: int) -> int:
        """nv."""
        return self._layout.nv

    def shift(self, value: torch.Tensor, move: torch.Tensor) -> torch.Tensor:
        """q ⊕ δ."""
        return shift(self._layout, value, move)

    def difference(self, value: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
        """δ with reference ⊕ δ = value."""
        return difference(self._layout, value, reference)

    def pull(self, value: torch.Tensor, covectors: torch.Tensor) -> torch.Tensor:
        """Covectors on δ."""
        return covectors @ basis(self._layout, value)

    def units(self, value: torch.Tensor) -> torch.Tensor:
        """P, see `projection`."""
        return projection(self._layout, value)
