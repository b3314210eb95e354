"""Manifolds of a matter's state beside plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsim.core.loaded import Loaded
from warpsim.core.torch_quaternions import quat_exponential, quat_logarithm, quat_product

if TYPE_CHECKING:
    import torch
else:
    torch = Loaded("torch")


class UnitQuaternions:
    """A field of unit quaternions (w, x, y, z), (W, n) `quat`: moves are rotation vectors in each one's own frame."""

    def tangent_size(self, size: int) -> int:
        """Three per quaternion."""
        return size // 4 * 3

    def shift(self, value: torch.Tensor, move: torch.Tensor) -> torch.Tensor:
        """q ⊗ exp(δ)."""
        turned = quat_product(value.unflatten(-1, (-1, 4)), quat_exponential(move.unflatten(-1, (-1, 3))))
        return turned.flatten(-2)

    def difference(self, value: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
        """δ with reference ⊗ exp(δ) = value."""
        value, reference = torch.broadcast_tensors(value, reference)
        inverse = reference.unflatten(-1, (-1, 4)) * reference.new_tensor([1.0, -1.0, -1.0, -1.0])
        return quat_logarithm(quat_product(inverse, value.unflatten(-1, (-1, 4)))).flatten(-2)

    def pull(self, value: torch.Tensor, covectors: torch.Tensor) -> torch.Tensor:
        """Covectors on δ."""
        pulled = torch.einsum("...kni,...nij->...knj", covectors.unflatten(-1, (-1, 4)), _basis(value))
        return pulled.flatten(-2)

    def units(self, value: torch.Tensor) -> torch.Tensor:
        """Rows that give δ of a small change of the numbers: the columns of the basis are of length one half."""
        e = _basis(value)
        n = e.shape[-3]
        rows = value.new_zeros(*value.shape[:-1], n, 3, n, 4)
        for k in range(n):
            rows[..., k, :, k, :] = 4.0 * e[..., k, :, :].transpose(-1, -2)
        return rows.flatten(-2).flatten(-3, -2)


def _basis(value: torch.Tensor) -> torch.Tensor:
    """(…, n, 4, 3): derivative of each quaternion ⊗ exp(δ) by δ."""
    q = value.unflatten(-1, (-1, 4))
    units = torch.zeros(3, 4, dtype=value.dtype, device=value.device)
    units[:, 1:].fill_diagonal_(0.5)
    return torch.stack([quat_product(q, unit.expand_as(q)) for unit in units], -1)
