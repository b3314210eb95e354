"""What is loaded when it is first asked for, instead of with the module that names it.

Packages import downward only. The few methods that reach upward (`sim.gradcheck()`, say) or need a library that may not
be installed, matters that a reader meets, and readers of files whose library takes longer to load than a command to
run, name what they want here. Packages whose `__init__` names much more than one user needs hand out their names the
same way.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

PROVIDERS = {
    "gradcheck": ("warpsim.check.gradcheck.simulator_check", "check_simulator"),
    "plot": ("warpsim.view.plots.figure", "draw"),
    "write_video": ("warpsim.view.raycast.video", "write_video"),
    "with_targets": ("warpsim.task.targets", "with_targets"),
    "live_command": ("warpsim.cli.commands.live_view", "run_live"),
    "viewer": ("warpsim.sim.live", "open_viewer"),
    "read_mjcf": ("warpsim.io.mjcf", "read_mjcf"),
    "mjcf_spec": ("warpsim.io.mjcf.specs", "read_spec"),
    "mjcf_infer_missing_inertias": ("warpsim.io.mjcf.specs", "infer_missing_inertias"),
    "scene_to_mjcf": ("warpsim.sim.mjcf_export", "scene_to_mjcf"),
    "scene_of_model": ("warpsim.io.mjcf", "scene_of_model"),
    "matter:deformable": ("warpsim.deformable.kind", "DeformableKind"),
    "deformable.compile": ("warpsim.deformable.matter", "DeformableMatter"),
    "open_hdf5": ("h5py", "File"),
    "read_parquet": ("pyarrow.parquet", "read_table"),
    "mcap_reader": ("mcap.reader", "make_reader"),
    "mcap_error": ("mcap.exceptions", "McapError"),
    "rosbag_reader": ("rosbags.highlevel", "AnyReader"),
    "rosbag_error": ("rosbags.highlevel", "AnyReaderError"),
    "rosbag_typestore": ("rosbags.typesys", "get_typestore"),
    "rosbag_stores": ("rosbags.typesys", "Stores"),
    "matter:liquid": ("warpsim.particles.kind", "LiquidKind"),
}
"""Name → module and function or class."""


def provided(name: str) -> Callable[..., Any]:
    """The function that stands behind a name."""
    module, function = PROVIDERS[name]
    return getattr(importlib.import_module(module), function)


def on_first_use(
    package: str, names: dict[str, Any], public: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose public names are loaded on first use.

    Args:
        package: Its name.
        names: Its `globals()`; what was loaded is kept there.
        public: Public name → module that defines it.
    """

    def load(name: str) -> Any:
        if name not in public:
            known = ", ".join(sorted(public))
            raise AttributeError(f"module {package!r} has no attribute {name!r}; public names: {known}")
        names[name] = getattr(importlib.import_module(public[name]), name)
        return names[name]

    return load, lambda: sorted({*names, *public})
