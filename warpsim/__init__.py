"""warpsim: author a scene in USD, then optimise anything in it.

Public names are loaded on first use, so that `import warpsim` is quick and needs neither torch nor USD nor MuJoCo.
"""

import importlib

from warpsim.version import __version__ as __version__

_PUBLIC = {
    "Simulator": "warpsim.simulator",
    "Trajectory": "warpsim.trajectory",
    "Observed": "warpsim.trajectory",
    "NetworkPolicy": "warpsim.network_policy",
    "Distribution": "warpsim.distribution",
    "optimize_task": "warpsim.task.solve",
    "OptimisedTask": "warpsim.task.solve",
    "Task": "warpsim.task.task",
    "Scene": "warpsim.scene",
    "load_scene": "warpsim.load",
    "read_usd": "warpsim.usd.reader",
    "read_mjcf": "warpsim.mjcf",
    "WarpsimError": "warpsim.errors",
    "SceneError": "warpsim.errors",
    "UnsupportedError": "warpsim.errors",
    "InputError": "warpsim.errors",
    "SimulationError": "warpsim.errors",
    "CompileError": "warpsim.errors",
    "OutputError": "warpsim.errors",
    "TaskError": "warpsim.errors",
    "AssumedWarning": "warpsim.errors",
    "CacheWarning": "warpsim.errors",
    "LeftOutWarning": "warpsim.errors",
    "RangeError": "warpsim.errors",
    "UnconvergedError": "warpsim.errors",
    "UnconvergedWarning": "warpsim.errors",
    "UnknownNameError": "warpsim.errors",
}
"""Public name → module that defines it."""

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'warpsim' has no attribute {name!r}; public names: {', '.join(__all__)}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
