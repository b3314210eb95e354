"""warpsim: author a scene in USD, then optimize anything in it.

Public names are loaded on first use, so that `import warpsim` is quick and needs neither torch nor USD nor MuJoCo.
"""

from warpsim.core.registry import on_first_use
from warpsim.version import __version__ as __version__

_PUBLIC = {
    "Simulator": "warpsim.sim.simulator",
    "SimulatorOptions": "warpsim.sim.options",
    "Trajectory": "warpsim.sim.trajectory",
    "Observed": "warpsim.sim.trajectory",
    "Start": "warpsim.sim.start",
    "Memory": "warpsim.tape.memory",
    "NetworkPolicy": "warpsim.sim.network_policy",
    "Randomization": "warpsim.sim.randomization",
    "identify": "warpsim.identification.fit",
    "Twin": "warpsim.identification.twin",
    "Parameter": "warpsim.identification.parameter",
    "Recording": "warpsim.identification.recordings",
    "Windows": "warpsim.identification.windows",
    "optimize": "warpsim.task.solve",
    "OptimizedTask": "warpsim.task.solve",
    "Task": "warpsim.task.task",
    "Scene": "warpsim.scene",
    "Matter": "warpsim.matter.matter",
    "MatterDescription": "warpsim.scene.matters",
    "MatterKind": "warpsim.scene.matters",
    "register_matter": "warpsim.scene.matters",
    "load_scene": "warpsim.io.load",
    "example_scene": "warpsim.io.example_scenes",
    "read_usd": "warpsim.io.usd.reader",
    "read_mjcf": "warpsim.io.mjcf",
    "WarpsimError": "warpsim.core.errors",
    "SceneError": "warpsim.core.errors",
    "UnsupportedError": "warpsim.core.errors",
    "InputError": "warpsim.core.errors",
    "SimulationError": "warpsim.core.errors",
    "CompileError": "warpsim.core.errors",
    "OutputError": "warpsim.core.errors",
    "TaskError": "warpsim.core.errors",
    "AssumedWarning": "warpsim.core.errors",
    "CacheWarning": "warpsim.core.errors",
    "UnsupportedPhysicsWarning": "warpsim.core.errors",
    "RangeError": "warpsim.core.errors",
    "UnconvergedError": "warpsim.core.errors",
    "UnconvergedWarning": "warpsim.core.errors",
    "UnknownNameError": "warpsim.core.errors",
}
"""Public name → module that defines it."""

__all__ = sorted(_PUBLIC)

PUBLIC_PACKAGES = (
    "warpsim",
    "warpsim.scene",
    "warpsim.io.usd.author",
    "warpsim.io.mjcf",
    "warpsim.objective",
    "warpsim.optimizers",
    "warpsim.task",
    "warpsim.learn",
    "warpsim.gym",
    "warpsim.identification",
    "warpsim.parallel",
    "warpsim.matter",
    "warpsim.deformable",
    "warpsim.particles",
    "warpsim.check.gradcheck",
    "warpsim.check.validity",
    "warpsim.check.panel",
    "warpsim.check.records",
    "warpsim.view.page",
    "warpsim.view.raycast",
    "warpsim.rigid.query",
    "warpsim.tape",
)
"""The declared API: the names in `__all__` of these packages. Everything else may change without notice."""

__getattr__, __dir__ = on_first_use(__name__, globals(), _PUBLIC)
