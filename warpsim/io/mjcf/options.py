"""Options, flags and medium of a MuJoCo model, and the parts of it that concern the whole scene."""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf.engine import mujoco
from warpsim.io.mjcf.source import MjSource
from warpsim.scene.description import Medium, Options

_INTEGRATORS = {
    mujoco.mjtIntegrator.mjINT_EULER: "euler",
    mujoco.mjtIntegrator.mjINT_RK4: "rk4",
    mujoco.mjtIntegrator.mjINT_IMPLICITFAST: "implicitfast",
}
_CONES = {mujoco.mjtCone.mjCONE_ELLIPTIC: "elliptic", mujoco.mjtCone.mjCONE_PYRAMIDAL: "pyramidal"}

_IGNORED_DISABLE_FLAGS = {
    "warmstart": "the optimum does not depend on the starting point",
    "midphase": "pairs are listed once, at compile time",
    "autoreset": "a failed rollout raises instead of resetting",
    "nativeccd": "collision here has one method for each pair of shapes",
    "multiccd": "collision here has one method for each pair of shapes",
    "island": "the optimum does not depend on how it is found",
    "sensor": "sensors are only computed where asked for",
}
_IGNORED_ENABLE_FLAGS = {
    "energy": "energies do not act on the motion",
    "fwdinv": "a diagnostic",
    "invdiscrete": "concerns inverse dynamics alone",
}
_UNSUPPORTED_ENABLE_FLAGS = {
    "override": "contact parameters cannot be overridden all at once",
    "sleep": "bodies are not put to sleep",
    "diagexact": "softness of constraints uses the approximate diagonal",
    "ipc": "it concerns flexes, which are not modeled",
    "speculative": "speculative contacts are not modeled",
}
NOSLIP = "noslip_iterations"
"""The one option whose lack is noted but never refused: it only takes out what little slip soft contacts have."""
_IGNORED_COUNTS = {"ncam": "cameras", "nlight": "lights", "nskin": "skins", "ntuple": "tuples", "ntext": "texts"}
_IGNORED_COUNTS |= {"nnumeric": "numerics", "nuserdata": "userdata"}


def read_options(source: MjSource) -> Options:
    """Time step, gravity, integrator and constraint solver. Flags are honored here, by the other readers, or noted."""
    option = source.model.opt
    _note_solver(source)
    _note_flags(source)
    return Options(
        gravity=np.zeros(3) if source.disabled("gravity") else option.gravity.copy(),
        timestep=float(option.timestep),
        integrator=_integrator(source),
        cone=_CONES[mujoco.mjtCone(option.cone)],
        impratio=float(option.impratio),
        solver_iterations=int(option.iterations),
        solver_tolerance=float(option.tolerance),
        implicit_damping=not source.disabled("eulerdamp"),
        limit_timeconst=not source.disabled("refsafe"),
        constraints=not source.disabled("constraint"),
        contacts=not source.disabled("contact"),
    )


def read_medium(source: MjSource) -> Medium:
    """The medium; none where springs and dampers are both disabled, which MuJoCo takes to mean all passive forces."""
    option = source.model.opt
    if source.disabled("spring") and source.disabled("damper"):
        return Medium()
    return Medium(float(option.density), float(option.viscosity), option.wind.copy())


def _integrator(source: MjSource) -> str:
    integrator = mujoco.mjtIntegrator(source.model.opt.integrator)
    if integrator not in _INTEGRATORS:
        word = integrator.name.removeprefix("mjINT_").lower()
        source.unsupported("option", f"integrator {word}", "not modeled; implicitfast would take its place")
    return _INTEGRATORS.get(integrator, "implicitfast")


def _note_solver(source: MjSource) -> None:
    option = source.model.opt
    if option.noslip_iterations > 0:
        source.unsupported("option", NOSLIP, "contacts creep where MuJoCo's no-slip solver would hold them")
    if option.solver != mujoco.mjtSolver.mjSOL_NEWTON:
        word = mujoco.mjtSolver(option.solver).name.removeprefix("mjSOL_")
        source.ignored("option", f"solver {word}", "Newton's method finds the same optimum")


def _note_flags(source: MjSource) -> None:
    for flag, reason in _IGNORED_DISABLE_FLAGS.items():
        if source.disabled(flag):
            source.ignored("option", f"flag {flag}", reason)
    for flag, reason in _IGNORED_ENABLE_FLAGS.items():
        if source.enabled(flag):
            source.ignored("option", f"flag {flag}", reason)
    for flag, reason in _UNSUPPORTED_ENABLE_FLAGS.items():
        if source.enabled(flag):
            source.unsupported("option", f"flag {flag}", reason)


def note_unread(source: MjSource) -> None:
    """Notes the kinds of things that no reader looks at."""
    model = source.model
    if model.nflex:
        source.unsupported("model", "flex", f"{model.nflex} deformable flexes are not modeled")
    if model.nplugin:
        source.unsupported("model", "plugin", f"{model.nplugin} engine plugins are not modeled")
    for count, word in _IGNORED_COUNTS.items():
        if getattr(model, count):
            source.ignored("model", word, f"{getattr(model, count)}: no influence on the motion")
