"""Who is compared, as data: packages, script, and the cases each can run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """A simulator, in one configuration, in an environment of its own."""

    name: str
    requirements: tuple[str, ...]
    """What its environment holds; peers with the same share one."""
    script: str
    """In this folder; see `adapter`."""
    cases: tuple[str, ...]
    """Names of `tools.bench.cases.CASES`."""
    options: tuple[str, ...] = ()
    """Of the script."""


_JAX = ("mujoco-mjx==3.17.0", "brax==0.14.2")
_TORCH = "torch==2.13.0"
"""Named with its version: without, pip may choose a build with gigabytes of CUDA."""

PEERS = (
    Peer("MJX", _JAX, "adapter_mjx.py", ("humanoid-ground", "ant-ground")),
    Peer("MJX, float32", _JAX, "adapter_mjx.py", ("humanoid-ground", "ant-ground"), ("float32",)),
    Peer("MJX, converged", _JAX, "adapter_mjx.py", ("ant-ground",), ("unrolled",)),
    Peer("Brax", _JAX, "adapter_brax.py", ("ant-ground",)),
    Peer("Brax, float32", _JAX, "adapter_brax.py", ("ant-ground",), ("float32",)),
    Peer("Newton", ("newton==1.7.0", "mujoco"), "adapter_newton.py", ("humanoid-ground", "ant-ground")),
    Peer("Genesis", (_TORCH, "genesis-world==1.4.5"), "adapter_genesis.py", ("quadruped-ground",)),
    # its bindings crash under NumPy 2
    Peer("Nimble", (_TORCH, "nimblephysics", "mujoco", "numpy<2"), "adapter_nimble.py", ("quadruped-ground",)),
    Peer("Pinocchio", ("pin==4.1.0", "mujoco"), "adapter_pinocchio.py", ("humanoid-smooth",)),
)
