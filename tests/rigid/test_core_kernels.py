"""Kernels depend on types, never on a scene; modules stay small; every one also compiles for CUDA."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

import warpsim
from core_fingerprint import inputs_of, results, rollout_of
from rigid_support import INTEGRATORS, Rollout, initial_state, random_model, scene_of

TESTS = Path(__file__).resolve().parents[1] / "support"
PACKAGE = Path(warpsim.__file__).parent
LARGEST_MODULE = 16
"""Kernels; a module is compiled as a whole, so large ones make every edit and every cold start slow."""


def kernel_modules() -> list[str]:
    """Names of the package's modules that hold kernels."""
    made = re.compile(r"^@wp\.kernel|^\w+_kernel = ", re.MULTILINE)  # there, or by a function of another module
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if made.search(path.read_text(encoding="utf-8"))]
    return [".".join(("warpsim", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in files]


def cached_modules() -> set[str]:
    """Names of all modules in the kernel cache, with their hashes."""
    return {path.name for path in Path(wp.config.kernel_cache_dir).glob("wp_warpsim*")}


def compiled_modules(name: str) -> list[wp.Module]:
    """What Warp compiles of a Python module: one module, or some that are named after it."""
    kernels = [value for value in vars(importlib.import_module(name)).values() if isinstance(value, wp.Kernel)]
    return list({k.module.name: k.module for k in kernels if k.module.name.startswith(name)}.values())


def test_modules_are_small():
    counts = {name: max((len(m.kernels) for m in compiled_modules(name)), default=0) for name in kernel_modules()}
    assert counts and all(counts.values()), counts
    assert max(counts.values()) <= LARGEST_MODULE, counts


def test_a_second_scene_compiles_nothing():
    for integrator in INTEGRATORS:
        rollout = rollout_of(integrator)
        results(rollout, inputs_of(rollout))
    before = cached_modules()
    assert before
    for seed, integrator in enumerate(INTEGRATORS):
        model = random_model(seed, integrator)
        rollout = Rollout(scene_of(model), 2, ("joint_force",), ("body.mass",), worlds=seed + 1)
        ours = rollout.model
        state = initial_state(ours, ours.initial_q, ours.initial_qd, ours.initial_activation)
        rollout.gradient(state | rollout.random_controls() | rollout.parameter_values())
    assert cached_modules() == before


@pytest.mark.long
def test_a_cold_start_compiles_each_module_once(tmp_path):
    path = os.pathsep.join([str(TESTS.parents[1]), str(TESTS), os.environ.get("PYTHONPATH", "")])
    for integrator in INTEGRATORS:
        command = [sys.executable, str(TESTS / "core_fingerprint.py"), integrator]
        environment = {**os.environ, "PYTHONPATH": path, "WARP_CACHE_PATH": str(tmp_path)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    names = [directory.name.rsplit("_", 1)[0] for directory in tmp_path.rglob("wp_warpsim*") if directory.is_dir()]
    assert names and len(names) == len(set(names)), sorted(names)


@pytest.mark.long
@pytest.mark.parametrize("name", kernel_modules())
def test_every_module_compiles_for_cuda(name, tmp_path):
    modules = compiled_modules(name)
    for module in modules:
        wp.compile_aot_module(module, arch=80, use_ptx=True, module_dir=tmp_path)
    assert len(list(tmp_path.glob("*.ptx"))) == len(modules) > 0, name
