"""Who is compared, as data: packages, script, and the cases each can run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """A simulator in an environment of its own."""

    name: str
    requirements: tuple[str, ...]
    """What its environment holds; peers with the same share one."""
    script: str
    """In this folder; see `adapter`."""
    cases: tuple[str, ...]
    """Names of `tools.bench.cases.CASES`."""


_JAX = ("mujoco-mjx==3.17.0", "brax==0.14.2")

PEERS = (
    Peer("MJX", _JAX, "adapter_mjx.py", ("humanoid-ground", "ant-ground")),
    Peer("Brax", _JAX, "adapter_brax.py", ("ant-ground",)),
    Peer("Newton", ("newton==1.7.0", "mujoco"), "adapter_newton.py", ("humanoid-ground", "ant-ground")),
)
