"""A policy as ONNX: features in, controls out, in double precision as it was trained."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.core.errors import InputError
from warpsim.core.files import replacing
from warpsim.sim.network_policy import NetworkPolicy

onnx: Any
try:
    import onnx
except ImportError:
    onnx = None

_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "elu": "Elu"}
_OPSET, _IR = 18, 10
"""Versions of ONNX's operators and of its file format, old enough for what robots run."""


def write_onnx(policy: NetworkPolicy, path: str | PathLike[str]) -> Path:
    """Writes a graph from "features" (samples, n), as `policy.observe` gives them, to "controls" (samples, m).

    Args:
        policy: What to write; mean and deviation of the features are part of it.
        path: A .onnx file.

    Raises:
        InputError: The package onnx is not installed.
    """
    if onnx is None:
        raise InputError("writing ONNX needs the package onnx; install it with `pip install warpsim[onnx]`")
    constants: dict[str, np.ndarray] = {
        "mean": policy.mean.detach().cpu().numpy(),
        "deviation": policy.deviation.detach().cpu().numpy(),
        "center": np.array(policy.shape.center),
        "reach": np.array(policy.shape.reach),
    }
    nodes = [_node("Sub", ["features", "mean"], "centered"), _node("Div", ["centered", "deviation"], "normalized")]
    last = "normalized"
    for k, (layer, name) in enumerate(zip(policy.linear, policy.shape.activations, strict=True)):
        constants[f"weight{k}"] = layer.weight.detach().cpu().numpy()
        constants[f"bias{k}"] = layer.bias.detach().cpu().numpy()
        nodes.append(_node("Gemm", [last, f"weight{k}", f"bias{k}"], f"layer{k}", transB=1))
        last = f"layer{k}"
        if name in _ACTIVATIONS:
            nodes.append(_node(_ACTIVATIONS[name], [last], f"answer{k}"))
            last = f"answer{k}"
    nodes += [_node("Mul", [last, "reach"], "scaled"), _node("Add", ["scaled", "center"], "controls")]
    kind = onnx.helper.np_dtype_to_tensor_dtype(constants["mean"].dtype)
    graph = onnx.helper.make_graph(
        nodes,
        "policy",
        [onnx.helper.make_tensor_value_info("features", kind, ["samples", len(policy.features)])],
        [onnx.helper.make_tensor_value_info("controls", kind, ["samples", sum(policy.shape.sizes)])],
        [onnx.numpy_helper.from_array(value.astype(constants["mean"].dtype), n) for n, value in constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=_IR)
    onnx.checker.check_model(model)
    with replacing(path) as temporary:
        temporary.write_bytes(model.SerializeToString())
    return Path(fspath(path))


def _node(operator: str, inputs: list[str], output: str, **options: Any) -> Any:
    return onnx.helper.make_node(operator, inputs, [output], **options)
