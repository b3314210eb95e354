"""A network on the features of a state, one thread a world, and the array of its weights.

Weights are replicated over worlds and their gradients kept per world, so that the sum over worlds has one order. The
layers are native code with an adjoint of their own: Warp's adjoint of the same loops is ten times slower, because it
adds to each weight's gradient through the general array access.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.core.precision import numpy_real, real
from warpsim.policy.spec import ACTIVATIONS, COSINE, LOCAL_VELOCITY, ROTATION, SINE, VELOCITY, PolicySpec
from warpsim.tape.arena import Arena

_SINE, _COSINE, _VELOCITY = wp.constant(SINE), wp.constant(COSINE), wp.constant(VELOCITY)
_ROTATION, _LOCAL_VELOCITY = wp.constant(ROTATION), wp.constant(LOCAL_VELOCITY)

# Layer l maps x (in) to y (out): weights are laid out (in, out), so that all sums run along memory, then the bias.
_POINTERS = """
    using scalar = decltype(weights.data[0] + weights.data[0]);
    const scalar* __restrict__ p = reinterpret_cast<const scalar*>(
        reinterpret_cast<const char*>(weights.data) + w * weights.strides[0]);
    const scalar* x = reinterpret_cast<const scalar*>(
        reinterpret_cast<const char*>(features.data) + w * features.strides[0]);
    scalar* layer = reinterpret_cast<scalar*>(reinterpret_cast<char*>(layers.data) + w * layers.strides[0]);
"""
_FORWARD = (
    _POINTERS
    + """
    int in = features.shape[1];
    for (int l = 0; l < widths.shape[0]; ++l) {
        const int out = widths.data[l], kind = activations.data[l];
        scalar* __restrict__ y = layer;
        const scalar* __restrict__ bias = p + in * out;
        for (int o = 0; o < out; ++o) y[o] = bias[o];
        for (int i = 0; i < in; ++i) {
            const scalar value = x[i];
            for (int o = 0; o < out; ++o) y[o] += p[i * out + o] * value;
        }
        if (kind == 1) for (int o = 0; o < out; ++o) y[o] = tanh(y[o]);
        if (kind == 2) for (int o = 0; o < out; ++o) y[o] = y[o] > scalar(0) ? y[o] : scalar(0);
        if (kind == 3) for (int o = 0; o < out; ++o) y[o] = y[o] > scalar(0) ? y[o] : exp(y[o]) - scalar(1);
        p += in * out + out;
        x = y;
        layer += out;
        in = out;
    }
"""
)
# Last layer first: its adjoint is already in `by_layers`; those of the layers before are made there.
_BACKWARD = (
    _POINTERS
    + """
    scalar* g = reinterpret_cast<scalar*>(reinterpret_cast<char*>(by_weights.data) + w * by_weights.strides[0]);
    scalar* by_x = reinterpret_cast<scalar*>(reinterpret_cast<char*>(by_features.data) + w * by_features.strides[0]);
    scalar* by_layer = reinterpret_cast<scalar*>(reinterpret_cast<char*>(by_layers.data) + w * by_layers.strides[0]);
    const int count = widths.shape[0];
    int at = 0, end = 0;
    for (int l = 0; l < count; ++l) {
        const int in = l ? widths.data[l - 1] : features.shape[1];
        end += (in + 1) * widths.data[l];
        at += widths.data[l];
    }
    for (int l = count - 1; l >= 0; --l) {
        const int out = widths.data[l], in = l ? widths.data[l - 1] : features.shape[1], kind = activations.data[l];
        at -= out;
        end -= (in + 1) * out;
        const scalar* y = layer + at;
        scalar* __restrict__ d = by_layer + at;
        const scalar* before = l ? layer + at - in : x;
        scalar* __restrict__ by_before = l ? by_layer + at - in : by_x;
        if (kind == 1) for (int o = 0; o < out; ++o) d[o] *= scalar(1) - y[o] * y[o];
        if (kind == 2) for (int o = 0; o < out; ++o) d[o] = y[o] > scalar(0) ? d[o] : scalar(0);
        if (kind == 3) for (int o = 0; o < out; ++o) d[o] *= y[o] > scalar(0) ? scalar(1) : y[o] + scalar(1);
        scalar* __restrict__ by_p = g + end;
        const scalar* __restrict__ q = p + end;
        for (int i = 0; i < in; ++i) {
            const scalar value = before[i];
            scalar s[4] = {0, 0, 0, 0};  // four sums at a time: the compiler may not reorder one
            int o = 0;
            for (; o + 4 <= out; o += 4)
                for (int k = 0; k < 4; ++k) s[k] += q[i * out + o + k] * d[o + k];
            for (; o < out; ++o) s[0] += q[i * out + o] * d[o];
            by_before[i] += (s[0] + s[1]) + (s[2] + s[3]);
            for (int j = 0; j < out; ++j) by_p[i * out + j] += value * d[j];
        }
        for (int o = 0; o < out; ++o) by_p[in * out + o] += d[o];
    }
"""
)


@wp.func
def _asked(phase: wp.array(dtype=wp.int32), w: int, hold: int) -> bool:
    return phase[w] % hold == 0


@wp.func
def _rotation_entry(q: wp.array2d(dtype=real), w: int, first: int, row: int, column: int) -> real:
    """Entry of the matrix of the quaternion (w first) at q[w, first …], which turns body into world axes."""
    r = row % 3
    c = column % 3
    two = real(2.0)
    scalar = q[w, first]
    if r == c:
        a = q[w, first + 1 + (r + 1) % 3]
        b = q[w, first + 1 + (r + 2) % 3]
        return real(1.0) - two * (a * a + b * b)
    third = 3 - r - c
    product = q[w, first + 1 + r] * q[w, first + 1 + c]
    turned = scalar * q[w, first + 1 + third]
    if (r + 1) % 3 == c:
        return two * (product - turned)
    return two * (product + turned)


@wp.kernel
def _features_kernel(
    hold: int,
    kind: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    entry: wp.array(dtype=wp.int32),
    quaternion: wp.array(dtype=wp.int32),
    scale: wp.array(dtype=real),
    offset: wp.array(dtype=real),
    # state
    phase: wp.array(dtype=wp.int32),
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # out
    features: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    if _asked(phase, w, hold):
        k = index[i]
        e = entry[i]
        if kind[i] == _SINE:
            features[w, i] = scale[i] * (wp.sin(q[w, k]) - offset[i])
        elif kind[i] == _COSINE:
            features[w, i] = scale[i] * (wp.cos(q[w, k]) - offset[i])
        elif kind[i] == _VELOCITY:
            features[w, i] = scale[i] * (qd[w, k] - offset[i])
        elif kind[i] == _ROTATION:
            features[w, i] = scale[i] * (_rotation_entry(q, w, k, e // 3, e % 3) - offset[i])
        elif kind[i] == _LOCAL_VELOCITY:
            p = quaternion[i]
            x = _rotation_entry(q, w, p, 0, e) * qd[w, k]
            y = _rotation_entry(q, w, p, 1, e) * qd[w, k + 1]
            z = _rotation_entry(q, w, p, 2, e) * qd[w, k + 2]
            features[w, i] = scale[i] * (x + y + z - offset[i])
        else:
            features[w, i] = scale[i] * (q[w, k] - offset[i])


@wp.func_native(_FORWARD)
def _evaluate(
    weights: wp.array2d(dtype=real),
    widths: wp.array(dtype=wp.int32),
    activations: wp.array(dtype=wp.int32),
    features: wp.array2d(dtype=real),
    layers: wp.array2d(dtype=real),
    w: int,
): ...


@wp.func_native(_BACKWARD)
def _pull_back(
    weights: wp.array2d(dtype=real),
    widths: wp.array(dtype=wp.int32),
    activations: wp.array(dtype=wp.int32),
    features: wp.array2d(dtype=real),
    layers: wp.array2d(dtype=real),
    by_weights: wp.array2d(dtype=real),
    by_features: wp.array2d(dtype=real),
    by_layers: wp.array2d(dtype=real),
    w: int,
): ...


@wp.kernel(enable_backward=False)
def _layers_kernel(
    hold: int,
    widths: wp.array(dtype=wp.int32),
    activations: wp.array(dtype=wp.int32),
    # parameters
    weights: wp.array2d(dtype=real),
    # state
    phase: wp.array(dtype=wp.int32),
    # work in
    features: wp.array2d(dtype=real),
    # work out
    layers: wp.array2d(dtype=real),
):
    w = wp.tid()
    if _asked(phase, w, hold):
        _evaluate(weights, widths, activations, features, layers, w)


@wp.kernel(enable_backward=False)
def _layers_adjoint_kernel(
    hold: int,
    widths: wp.array(dtype=wp.int32),
    activations: wp.array(dtype=wp.int32),
    # parameters
    weights: wp.array2d(dtype=real),
    # state
    phase: wp.array(dtype=wp.int32),
    # work
    features: wp.array2d(dtype=real),
    layers: wp.array2d(dtype=real),
    # adjoints
    by_weights: wp.array2d(dtype=real),
    by_features: wp.array2d(dtype=real),
    by_layers: wp.array2d(dtype=real),
):
    w = wp.tid()
    if _asked(phase, w, hold):
        _pull_back(weights, widths, activations, features, layers, by_weights, by_features, by_layers, w)


@dataclass
class NetworkWork:
    """Intermediates of one evaluation."""

    features: wp.array  # (W, features)
    layers: wp.array  # (W, sum of widths): the layers' outputs one after the other; the last is the answer


class Network:
    """The weights of one policy on a device, and its evaluation.

    Attributes:
        spec: What it is made of.
        worlds: W.
        device: Where it lives.
        weights: (W, n), layer by layer: weights (in, out), then biases; with a gradient.
        answer: Where the last layer's outputs begin in `NetworkWork.layers`.
    """

    def __init__(self, spec: PolicySpec, worlds: int, device: wp.Device, weights: wp.array | None = None) -> None:
        """Allocates, or takes a view of another network's weights.

        Args:
            spec: What it is made of.
            worlds: W.
            device: Where it lives.
            weights: Existing array; None: zeros.
        """
        self.spec = spec
        self.worlds = worlds
        self.device = device
        if weights is None:
            weights = wp.zeros((worlds, spec.weight_count), dtype=real, device=device, requires_grad=True)
        self.weights = weights
        self.answer = sum(spec.widths[:-1])
        table = spec.features
        self._kind = wp.array([f.kind for f in table], dtype=wp.int32, device=device)
        self._index = wp.array([f.index for f in table], dtype=wp.int32, device=device)
        self._entry = wp.array([f.entry for f in table], dtype=wp.int32, device=device)
        self._quaternion = wp.array([f.quaternion for f in table], dtype=wp.int32, device=device)
        self._scale, self._offset = (
            wp.array(np.array(values, numpy_real), dtype=real, device=device)
            for values in ([f.scale for f in table], [f.offset for f in table])
        )
        self._widths = wp.array(list(spec.widths), dtype=wp.int32, device=device)
        self._activations = wp.array([ACTIVATIONS[a] for a in spec.activations], dtype=wp.int32, device=device)

    def part(self, first: int, last: int) -> Network:
        """The network of worlds first … last − 1, sharing memory."""
        return Network(self.spec, last - first, self.device, self.weights[first:last])

    def make_work(self, arena: Arena) -> NetworkWork:
        """Allocates one evaluation's intermediates."""
        return NetworkWork(
            arena.array((self.worlds, len(self.spec.features)), real),
            arena.array((self.worlds, sum(self.spec.widths)), real),
        )

    def evaluate(self, phase: wp.array, q: wp.array, qd: wp.array, work: NetworkWork, tape: wp.Tape | None) -> None:
        """Writes the layers' outputs in the worlds whose phase is a multiple of `hold`."""
        wp.launch(
            _features_kernel,
            dim=work.features.shape,
            inputs=[
                self.spec.hold,
                self._kind,
                self._index,
                self._entry,
                self._quaternion,
                self._scale,
                self._offset,
                phase,
                q,
                qd,
            ],
            outputs=[work.features],
            device=self.device,
        )
        given = [self.spec.hold, self._widths, self._activations, self.weights, phase, work.features]
        wp.launch(
            _layers_kernel,
            dim=self.worlds,
            inputs=given,
            outputs=[work.layers],
            device=self.device,
            record_tape=False,
        )
        if tape is None:
            return

        def adjoint() -> None:
            wp.launch(
                _layers_adjoint_kernel,
                dim=self.worlds,
                inputs=[*given, work.layers],
                outputs=[self.weights.grad, work.features.grad, work.layers.grad],
                device=self.device,
                record_tape=False,
            )

        tape.record_func(adjoint, arrays=[work.layers, work.features, self.weights])
