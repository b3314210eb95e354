"""`NetworkPolicy`: a small network of the state as a torch module, which rollouts evaluate inside their kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from warpsim.autograd.exchange import torch_device, torch_real
from warpsim.core.errors import InputError
from warpsim.policy.spec import COORDINATE, COSINE, SINE, VELOCITY, Feature, PolicySpec
from warpsim.rigid.model.joint_names import find_joint
from warpsim.rigid.model.model import Model
from warpsim.sim.controls import ControlLayout
from warpsim.sim.trajectory import Observed

_TORCH = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda x: x}


class NetworkPolicy(torch.nn.Module):
    """Maps joint coordinates and velocities to controls by fully connected layers.

    A rollout evaluates it in kernels, in the captured segment, so that a closed loop runs at the speed of an open one;
    called on an observed state it computes the same in torch. Weights are ordinary torch parameters.

    Where a control has a finite range the last layer is squashed into it by tanh.

    Attributes:
        features: What it sees, in order.
        layers: The linear layers.
    """

    def __init__(
        self,
        model: Model,
        layout: ControlLayout,
        *,
        hidden: Sequence[int] = (32, 32),
        activation: str = "tanh",
        position: Sequence[str] | None = None,
        angle: Sequence[str] | None = None,
        velocity: Sequence[str] | None = None,
        velocity_scale: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Draws weights; `Simulator.network_policy` gives model and layout.

        Args:
            model: What is controlled.
            layout: The controls it gives.
            hidden: Widths of the hidden layers.
            activation: "tanh" or "relu".
            position: Joints whose coordinates it sees as they are; None: those not in `angle`.
            angle: Hinges of which it sees sine and cosine; None: those without limits.
            velocity: Joints whose velocities it sees; None: all.
            velocity_scale: Factor of the velocities.
            seed: Of the initial weights.
        """
        super().__init__()
        self.features = _features(model, position, angle, velocity, velocity_scale)
        if any(name == "wrench" or "." in name for name in layout.names):
            raise InputError(
                "a network in kernels gives actuator inputs, drive targets and joint forces, not wrenches or controls "
                "of other matter; choose controls= without them, or use a torch module with `rollout_policy`"
            )
        self._controls = tuple(layout.names)
        self._sizes = tuple(layout.slice(n).stop - layout.slice(n).start for n in layout.names)
        center, reach, bounded = _ranges(model, layout)
        self._center, self._reach = tuple(center), tuple(reach)
        self._activations = (*[activation] * len(hidden), "tanh" if bounded else "identity")
        generator = torch.Generator().manual_seed(seed)
        widths = [len(self.features), *hidden, layout.size]
        self._linear: list[torch.nn.Linear] = []
        for before, after in zip(widths[:-1], widths[1:], strict=True):
            layer = torch.nn.Linear(before, after, dtype=torch_real, device=torch_device(model.device))
            with torch.no_grad():
                draw = torch.randn(after, before, generator=generator, dtype=torch.float64) / before**0.5
                layer.weight.copy_(draw)
                layer.bias.zero_()
            self._linear.append(layer)
        self.layers = torch.nn.ModuleList(self._linear)
        self.spec(1, 0)  # an unknown activation is refused here

    def spec(self, hold: int, delay: int) -> PolicySpec:
        """What kernels need to know besides the weights."""
        widths = tuple(layer.out_features for layer in self._linear)
        return PolicySpec(
            self.features,
            widths,
            self._activations,
            self._center,
            self._reach,
            self._controls,
            self._sizes,
            hold=hold,
            delay=delay,
        )

    def weights(self) -> torch.Tensor:
        """All weights and biases in the order of kernels, in the graph: layer by layer (in, out), then biases."""
        parts = [part for layer in self._linear for part in (layer.weight.T.reshape(-1), layer.bias)]
        return torch.cat(parts)

    def forward(self, state: Observed) -> torch.Tensor:
        """Controls (W, control size) for an observed state."""
        x = self.observe(state.q, state.qd)
        for layer, name in zip(self._linear, self._activations, strict=True):
            x = _TORCH[name](layer(x))
        return x * x.new_tensor(self._reach) + x.new_tensor(self._center)

    def observe(self, q: torch.Tensor, qd: torch.Tensor) -> torch.Tensor:
        """Features (…, n) of coordinates (…, nq) and velocities (…, nv)."""
        columns = []
        for f in self.features:
            value = qd[..., f.index] if f.kind == VELOCITY else q[..., f.index]
            value = torch.sin(value) if f.kind == SINE else torch.cos(value) if f.kind == COSINE else value
            columns.append(f.scale * value)
        return torch.stack(columns, -1)


def _features(
    model: Model,
    position: Sequence[str] | None,
    angle: Sequence[str] | None,
    velocity: Sequence[str] | None,
    velocity_scale: float,
) -> tuple[Feature, ...]:
    layout = model.layout
    joints = {name: find_joint(layout, name) for name in layout.joint_names}
    if angle is None:
        ranges = dict(zip(layout.joint_names, model.limit.range.numpy()[0], strict=True))
        turning = [n for n, j in joints.items() if j.kind == "hinge" and np.isinf(ranges[n]).all()]
        angle = [name for name in turning if name not in set(position or ())]
    if position is None:
        position = [name for name in joints if name not in set(angle)]
    if velocity is None:
        velocity = list(joints)
    found = [Feature(COORDINATE, i) for n in position for i in _range(find_joint(layout, n).q)]
    for name in angle:
        joint = find_joint(layout, name)
        if joint.kind != "hinge":
            raise InputError(f"joint {name!r} is a {joint.kind}; sine and cosine are taken of hinges")
        found += [Feature(SINE, joint.q.start), Feature(COSINE, joint.q.start)]
    found += [Feature(VELOCITY, i, velocity_scale) for n in velocity for i in _range(find_joint(layout, n).dofs)]
    return tuple(found)


def _range(part: slice) -> range:
    return range(part.start, part.stop)


def _ranges(model: Model, layout: ControlLayout) -> tuple[np.ndarray, np.ndarray, bool]:
    """Center and reach of each control, and whether outputs are squashed: where all actuators have a finite range."""
    center, reach = np.zeros(layout.size), np.ones(layout.size)
    if layout.names != ("actuator",):
        return center, reach, False
    ranges = model.actuator.control_range.numpy()[0]
    if not np.isfinite(ranges).all():
        return center, reach, False
    return ranges.mean(axis=1), 0.5 * (ranges[:, 1] - ranges[:, 0]), True
