"""`NetworkPolicy`: a small network of the state as a torch module, which rollouts evaluate inside their kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from warpsim.autograd.exchange import torch_device, torch_real
from warpsim.core.errors import InputError
from warpsim.policy.senses import sensed
from warpsim.policy.spec import (
    COORDINATE,
    COSINE,
    LOCAL_VELOCITY,
    ROTATION,
    SINE,
    VELOCITY,
    Feature,
    PolicySpec,
)
from warpsim.rigid.model.joint_names import find_joint
from warpsim.rigid.model.model import Model
from warpsim.sim.controls import ControlLayout
from warpsim.sim.trajectory import Observed

_TORCH: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "elu": torch.nn.functional.elu,
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class NetworkShape:
    """All of a `NetworkPolicy` but its numbers: what a saved policy is made from again.

    Attributes:
        features: What it sees, in order.
        hidden: Widths of the hidden layers.
        activations: Of each layer, the last included.
        center: (controls,): what is added to the last layer's outputs …
        reach: (controls,): … after they are multiplied by this.
        controls: Names of the controls it gives, in order.
        sizes: How many numbers each of them has.
    """

    features: tuple[Feature, ...]
    hidden: tuple[int, ...]
    activations: tuple[str, ...]
    center: tuple[float, ...]
    reach: tuple[float, ...]
    controls: tuple[str, ...]
    sizes: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> NetworkShape:
        """From what `to_dict` gave."""
        features = tuple(Feature(**feature) for feature in plain["features"])
        return cls(features, **{name: tuple(value) for name, value in plain.items() if name != "features"})


class NetworkPolicy(torch.nn.Module):
    """Maps features of a state to controls by fully connected layers.

    A rollout evaluates it in kernels, in the captured segment, so that a closed loop runs at the speed of an open one;
    called on an observed state it computes the same in torch. Weights are ordinary torch parameters.

    Where a control has a finite range the last layer is squashed into it by tanh.

    Attributes:
        shape: What it is made of.
        layers: The linear layers.
        mean: (features,), a buffer: what is subtracted from the features before the first layer sees them; 0 at first.
        deviation: (features,), a buffer: by what they are then divided; 1 at first.
        each_world: Makes weights of all worlds (W, n) from the weights (n,), so that worlds may see or answer
            something of their own and gradients be looked at world by world; None: all have the same.
    """

    mean: torch.Tensor
    deviation: torch.Tensor

    def __init__(self, shape: NetworkShape, *, seed: int = 0, device: torch.device | str = "cpu") -> None:
        """Draws weights.

        Args:
            shape: What it is made of; `Simulator.network_policy` makes one for a robot.
            seed: Of the weights.
            device: Where it lives.
        """
        super().__init__()
        self.shape = shape
        self.each_world: Callable[[torch.Tensor], torch.Tensor] | None = None
        generator = torch.Generator().manual_seed(seed)
        widths = [len(shape.features), *shape.hidden, sum(shape.sizes)]
        self._linear: list[torch.nn.Linear] = []
        for before, after in zip(widths[:-1], widths[1:], strict=True):
            layer = torch.nn.Linear(before, after, dtype=torch_real, device=device)
            with torch.no_grad():
                draw = torch.randn(after, before, generator=generator, dtype=torch.float64) / before**0.5
                layer.weight.copy_(draw)
                layer.bias.zero_()
            self._linear.append(layer)
        self.layers = torch.nn.ModuleList(self._linear)
        self.register_buffer("mean", torch.zeros(widths[0], dtype=torch_real, device=device))
        self.register_buffer("deviation", torch.ones(widths[0], dtype=torch_real, device=device))
        self.spec(1, 0)  # an unknown activation is refused here

    @property
    def features(self) -> tuple[Feature, ...]:
        """What it sees, in order."""
        return self.shape.features

    @property
    def linear(self) -> tuple[torch.nn.Linear, ...]:
        """The layers, in order."""
        return tuple(self._linear)

    def spec(self, hold: int, delay: int) -> PolicySpec:
        """What kernels need to know besides the weights."""
        shape = self.shape
        return PolicySpec(
            shape.features,
            (*shape.hidden, sum(shape.sizes)),
            shape.activations,
            shape.center,
            shape.reach,
            shape.controls,
            shape.sizes,
            hold=hold,
            delay=delay,
        )

    def weights(self) -> torch.Tensor:
        """All weights and biases in the order of kernels, in the graph: layer by layer (in, out), then biases.

        Kernels show the features as they are: the first layer's weights take in `mean` and `deviation`.
        """
        first = self._linear[0]
        folded = first.weight / self.deviation
        parts = [folded.T.reshape(-1), first.bias - folded @ self.mean]
        parts += [part for layer in self._linear[1:] for part in (layer.weight.T.reshape(-1), layer.bias)]
        return torch.cat(parts)

    def weights_in_kernels(self) -> torch.Tensor:
        """What a rollout is given: `weights`, (n,), or what `each_world` makes of them, (W, n)."""
        weights = self.weights()
        return weights if self.each_world is None else self.each_world(weights)

    def forward(self, state: Observed) -> torch.Tensor:
        """Controls (…, control size) for an observed state."""
        return self.answer(self.observe(state.q, state.qd))

    def answer(self, features: torch.Tensor) -> torch.Tensor:
        """Controls (…, control size) for features (…, n) as `observe` gives them."""
        x = (features - self.mean) / self.deviation
        for layer, name in zip(self._linear, self.shape.activations, strict=True):
            x = _TORCH[name](layer(x))
        return x * x.new_tensor(self.shape.reach) + x.new_tensor(self.shape.center)

    def observe(self, q: torch.Tensor, qd: torch.Tensor) -> torch.Tensor:
        """Features (…, n) of coordinates (…, nq) and velocities (…, nv), before `mean` and `deviation`."""
        return observe_features(self.features, q, qd)


def observe_features(features: Sequence[Feature], q: torch.Tensor, qd: torch.Tensor) -> torch.Tensor:
    """Features (…, n) of coordinates (…, nq) and velocities (…, nv), as kernels show them to a network."""
    groups: dict[tuple[int, ...], torch.Tensor] = {(COORDINATE,): q, (VELOCITY,): qd}
    for f in features:
        key = _group(f)
        if key not in groups:
            groups[key] = _shown(f, q, qd)
    first, firsts = 0, {}
    for key, values in groups.items():
        firsts[key] = first
        first += values.shape[-1]
    columns = [firsts[_group(f)] + (f.entry if f.kind in (ROTATION, LOCAL_VELOCITY) else f.index) for f in features]
    seen = torch.cat(list(groups.values()), -1)[..., columns]
    offset, scale = (q.new_tensor(values) for values in zip(*((f.offset, f.scale) for f in features), strict=True))
    return scale * (seen - offset)


def _group(f: Feature) -> tuple[int, ...]:
    """Features of one group are entries of the same tensor."""
    if f.kind == ROTATION:
        return f.kind, f.index
    return (f.kind, f.index, f.quaternion) if f.kind == LOCAL_VELOCITY else (f.kind,)


def _shown(f: Feature, q: torch.Tensor, qd: torch.Tensor) -> torch.Tensor:
    """The tensor of a feature's group, (…, entries)."""
    if f.kind == ROTATION:
        return _turn(q, f.index).flatten(-2)
    if f.kind == LOCAL_VELOCITY:
        return (_turn(q, f.quaternion) * qd[..., f.index : f.index + 3].unsqueeze(-1)).sum(-2)
    return torch.sin(q) if f.kind == SINE else torch.cos(q)


def _turn(q: torch.Tensor, first: int) -> torch.Tensor:
    """The matrix (…, 3, 3) of the quaternion at q[…, first:], which turns body into world axes."""
    w, x, y, z = q[..., first : first + 4].unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (z * z + x * x), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def make_network_policy(
    model: Model,
    layout: ControlLayout,
    *,
    hidden: Sequence[int] = (32, 32),
    activation: str = "tanh",
    senses: Sequence[str] | None = None,
    position: Sequence[str] | None = None,
    angle: Sequence[str] | None = None,
    velocity: Sequence[str] | None = None,
    velocity_scale: float = 1.0,
    seed: int = 0,
) -> NetworkPolicy:
    """A policy for a robot, for `rollout_policy`; `Simulator.network_policy` gives model and layout.

    Args:
        model: What is controlled.
        layout: The controls it gives.
        hidden: Widths of the hidden layers.
        activation: "tanh", "relu" or "elu".
        senses: What it sees, by name: "height", "up", "rotation", "base_velocity", "local_velocity" and
            "angular_velocity" of free bodies, "joint_position" and "joint_velocity" of all other joints; None:
            coordinates and velocities as the next three say.
        position: Joints whose coordinates it sees as they are; None: those not in `angle`.
        angle: Hinges of which it sees sine and cosine; None: those without limits.
        velocity: Joints whose velocities it sees; None: all.
        velocity_scale: Factor of the velocities.
        seed: Of the initial weights.
    """
    if any(name == "wrench" or "." in name for name in layout.names):
        raise InputError(
            "a network in kernels gives actuator inputs, drive targets and joint forces, not wrenches or controls "
            "of other matter; choose controls= without them, or use a torch module with `rollout_policy`"
        )
    if senses is not None and (position, angle, velocity, velocity_scale) != (None, None, None, 1.0):
        raise InputError("give senses=, or joints by position=, angle= and velocity=, not both")
    found = _features(model, position, angle, velocity, velocity_scale) if senses is None else ()
    center, reach, bounded = _ranges(model, layout)
    shape = NetworkShape(
        features=found if senses is None else sensed(model.layout, senses),
        hidden=tuple(hidden),
        activations=(*[activation] * len(hidden), "tanh" if bounded else "identity"),
        center=tuple(center.tolist()),
        reach=tuple(reach.tolist()),
        controls=tuple(layout.names),
        sizes=tuple(layout.slice(n).stop - layout.slice(n).start for n in layout.names),
    )
    return NetworkPolicy(shape, seed=seed, device=torch_device(model.device))


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
