"""Contact parameters of pairs of shapes, mixed from the two by MuJoCo's rule, on the derive tape.

The shape with the higher `priority` gives friction, solref, solimp, dimension and restitution alone. Between equals:

- friction: element-wise by the shapes' `friction_combine`. Where the two differ, the later of average < min <
  multiply < max counts (PhysX's precedence); MuJoCo's own shapes say "max". Ties of min and max share the derivative.
- solref: the mean weighted by `solmix` where both are time constants (positive), else the element-wise smaller.
- solimp: the mean weighted by `solmix`. Condim: the larger.
- restitution: the mean (USD's default). Above zero it replaces solref by the spring of `rigid.model.restitution`; the
  mixed solref then damps the friction rows only, as `solref_friction`, since an elastic spring would not damp them.
  Friction pyramids have no separate friction rows: with restitution use the elliptic cone.
- with `Options.impacts`, restitution is that of impacts and leaves solref alone. Where none is authored, a solref in
  its direct form (−stiffness, −damping) says how its spring would rebound, and the impact does the same. The first
  number of solimp then counts as 0: what touches slowly feels no jump of force either.

The margin is the sum of the shapes' margins, whatever their priority; contacts act below it, so the gap beyond it, in
which MuJoCo lists contacts that do not act, counts for adhesive actuators alone. Pairs of `Scene.contact_overrides`
take its values outright.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from warpsim.collision.contacts import PairTable
from warpsim.collision.pairs import override_pairs
from warpsim.core.precision import numpy_real, real, vec2, vec3, vec5
from warpsim.rigid.model.parameters import PairParameters
from warpsim.rigid.model.restitution import bouncing_solref, rebound_of
from warpsim.rigid.model.tables import Tables
from warpsim.scene import Scene, Shape

COMBINE_MODES = ("average", "min", "multiply", "max")
"""In order of precedence."""
_AVERAGE = wp.constant(0)
_MIN = wp.constant(1)
_MULTIPLY = wp.constant(2)

_LEAST_FRICTION = wp.constant(real(1e-5))  # MuJoCo's mjMINMU: keeps the friction cone from closing
_LEAST_WEIGHT = wp.constant(real(1e-15))  # MuJoCo's mjMINVAL
_BOTH = wp.constant(0)
_FIRST = wp.constant(1)
_SECOND = wp.constant(2)


@wp.struct
class PairTopology:
    """Per pair of the model's pair table."""

    shapes: wp.array2d(dtype=wp.int32)  # (np, 2)
    giver: wp.array(dtype=wp.int32)  # _BOTH, or the one whose priority is higher
    combine: wp.array(dtype=wp.int32)  # index into COMBINE_MODES
    override: wp.array(dtype=wp.int32)  # index of the contact override, or -1


@wp.struct
class _Materials:
    """Contact parameters that shapes author; (W, ns)."""

    friction: wp.array2d(dtype=vec3)  # sliding, torsional (m), rolling (m)
    solref: wp.array2d(dtype=vec2)
    solimp: wp.array2d(dtype=vec5)
    solmix: wp.array2d(dtype=real)
    margin: wp.array2d(dtype=real)  # m
    restitution: wp.array2d(dtype=real)


@wp.struct
class _Overrides:
    """Contact parameters given for pairs outright; (W, number of overrides)."""

    friction: wp.array2d(dtype=vec5)
    solref: wp.array2d(dtype=vec2)
    solref_friction: wp.array2d(dtype=vec2)
    solimp: wp.array2d(dtype=vec5)
    margin: wp.array2d(dtype=real)  # m


@wp.func
def _smaller(a: real, b: real) -> real:
    if a < b:
        return a
    if b < a:
        return b
    return real(0.5) * (a + b)


@wp.func
def _larger(a: real, b: real) -> real:
    if a > b:
        return a
    if b > a:
        return b
    return real(0.5) * (a + b)


@wp.func
def _combine(mode: int, a: real, b: real) -> real:
    if mode == _AVERAGE:
        return real(0.5) * (a + b)
    if mode == _MIN:
        return _smaller(a, b)
    if mode == _MULTIPLY:
        return a * b
    return _larger(a, b)


@wp.func
def _share(giver: int, a: real, b: real) -> real:
    """The first shape's share in the mean of solver parameters."""
    if giver == _FIRST:
        return real(1.0)
    if giver == _SECOND:
        return real(0.0)
    if a >= _LEAST_WEIGHT and b >= _LEAST_WEIGHT:
        return a / (a + b)
    if a < _LEAST_WEIGHT and b < _LEAST_WEIGHT:
        return real(0.5)
    if a < _LEAST_WEIGHT:
        return real(0.0)
    return real(1.0)


@wp.func
def _mixed_friction(giver: int, mode: int, a: vec3, b: vec3) -> vec3:
    if giver == _FIRST:
        return a
    if giver == _SECOND:
        return b
    return vec3(_combine(mode, a[0], b[0]), _combine(mode, a[1], b[1]), _combine(mode, a[2], b[2]))


@wp.func
def _mixed_solref(giver: int, share: real, a: vec2, b: vec2) -> vec2:
    if giver != _BOTH or (a[0] > real(0.0) and b[0] > real(0.0)):
        return share * a + (real(1.0) - share) * b
    return vec2(_smaller(a[0], b[0]), _smaller(a[1], b[1]))


@wp.func
def _mixed_restitution(giver: int, a: real, b: real) -> real:
    if giver == _FIRST:
        return a
    if giver == _SECOND:
        return b
    return real(0.5) * (a + b)


@wp.func
def _impact_restitution(e: real, solref: vec2) -> real:
    """As authored, or that of the spring and damper that a direct solref gives."""
    if e > real(0.0) or solref[0] >= real(0.0):
        return e
    return rebound_of(real(-0.5) * solref[1] / wp.sqrt(-solref[0]))


@wp.func
def _impedance(solimp: vec5, impacts: int) -> vec5:
    if impacts == 1:
        return vec5(real(0.0), solimp[1], solimp[2], solimp[3], solimp[4])
    return solimp


@wp.func
def _at_least(x: real) -> real:
    if x < _LEAST_FRICTION:
        return _LEAST_FRICTION
    return x


@wp.func
def _cone(f: vec5) -> vec5:
    return vec5(_at_least(f[0]), _at_least(f[1]), _at_least(f[2]), _at_least(f[3]), _at_least(f[4]))


@wp.kernel
def _mixing_kernel(
    # topology, parameters
    t: PairTopology,
    shape: _Materials,
    given: _Overrides,
    timestep: wp.array(dtype=real),
    impacts: int,
    # out
    friction: wp.array2d(dtype=vec5),
    solref: wp.array2d(dtype=vec2),
    solref_friction: wp.array2d(dtype=vec2),
    solimp: wp.array2d(dtype=vec5),
    margin: wp.array2d(dtype=real),
    restitution: wp.array2d(dtype=real),
):
    # One thread per world: pairs of one shape add to its adjoint, in a fixed order.
    w = wp.tid()
    for i in range(t.override.shape[0]):
        o = t.override[i]
        if o >= 0:
            friction[w, i] = _cone(given.friction[w, o])
            solref[w, i] = given.solref[w, o]
            solref_friction[w, i] = given.solref_friction[w, o]
            solimp[w, i] = _impedance(given.solimp[w, o], impacts)
            margin[w, i] = given.margin[w, o]
            restitution[w, i] = _impact_restitution(real(0.0), given.solref[w, o])
        else:
            a = t.shapes[i, 0]
            b = t.shapes[i, 1]
            giver = t.giver[i]
            share = _share(giver, shape.solmix[w, a], shape.solmix[w, b])
            f = _mixed_friction(giver, t.combine[i], shape.friction[w, a], shape.friction[w, b])
            friction[w, i] = _cone(vec5(f[0], f[0], f[1], f[2], f[2]))
            mixed_solimp = share * shape.solimp[w, a] + (real(1.0) - share) * shape.solimp[w, b]
            solimp[w, i] = _impedance(mixed_solimp, impacts)
            margin[w, i] = shape.margin[w, a] + shape.margin[w, b]
            mixed = _mixed_solref(giver, share, shape.solref[w, a], shape.solref[w, b])
            e = _mixed_restitution(giver, shape.restitution[w, a], shape.restitution[w, b])
            if e > real(0.0) and impacts == 0:
                solref[w, i] = bouncing_solref(e, timestep[w])
                solref_friction[w, i] = mixed
            else:
                solref[w, i] = mixed
                solref_friction[w, i] = vec2(real(0.0), real(0.0))
            restitution[w, i] = _impact_restitution(e, mixed)


@dataclass(frozen=True)
class ContactMixing:
    """Which parameters of shapes and overrides make up those of each pair."""

    topology: PairTopology
    condim: wp.array  # (np,) int32: 1, 3, 4 or 6
    gap: wp.array  # (np,), m: how far beyond the margin contacts hold adhesive actuators
    impacts: bool  # restitution is that of impacts, not of a spring

    def run(self, authored: dict[str, wp.array], timestep: wp.array, pair: PairParameters) -> None:
        """Fills `pair` from the authored parameters; taped if a tape records."""
        worlds, count = pair.margin.shape
        if count == 0:
            return
        shape, given = _Materials(), _Overrides()
        for struct, prefix in ((shape, "shape"), (given, "contact_override")):
            for name in struct._cls.vars:  # type: ignore[union-attr]  # added by wp.struct
                setattr(struct, name, authored[f"{prefix}.{name}"])
        wp.launch(
            _mixing_kernel,
            dim=worlds,
            inputs=[self.topology, shape, given, timestep, int(self.impacts)],
            outputs=[pair.friction, pair.solref, pair.solref_friction, pair.solimp, pair.margin, pair.restitution],
            device=pair.margin.device,
        )


def _author(t: Tables, scene: Scene) -> None:
    """Enters what shapes and overrides author about contact."""
    shapes, overrides = scene.shapes, scene.contact_overrides
    t.parameter("shape.friction", [s.friction for s in shapes], vec3)
    t.parameter("shape.solref", [s.solref for s in shapes], vec2)
    t.parameter("shape.solimp", [s.solimp for s in shapes], vec5)
    t.parameter("shape.solmix", [s.solmix for s in shapes], real)
    t.parameter("shape.margin", [s.margin for s in shapes], real)
    t.parameter("shape.restitution", [s.restitution for s in shapes], real)
    t.parameter("contact_override.friction", [o.friction for o in overrides], vec5)
    t.parameter("contact_override.solref", [o.solref for o in overrides], vec2)
    t.parameter("contact_override.solref_friction", [o.solref_friction for o in overrides], vec2)
    t.parameter("contact_override.solimp", [o.solimp for o in overrides], vec5)
    t.parameter("contact_override.margin", [o.margin for o in overrides], real)


def _giver(a: Shape, b: Shape) -> int:
    return 1 if a.priority > b.priority else 2 if b.priority > a.priority else 0


def _condim(a: Shape, b: Shape) -> int:
    return (max(a.condim, b.condim), a.condim, b.condim)[_giver(a, b)]


def contact_mixing(t: Tables, scene: Scene, table: PairTable) -> tuple[ContactMixing, PairParameters]:
    """The mixing of a model's pairs and the parameters it fills.

    Args:
        t: Where the authored parameters are entered.
        scene: Validated.
        table: The pairs, in whose order all results are.
    """
    _author(t, scene)
    overrides = override_pairs(scene)
    pairs = table.pair_shapes.numpy().reshape(-1, 2)
    given = [overrides.get(frozenset(pair), -1) for pair in pairs.tolist()]
    shapes = [(scene.shapes[a], scene.shapes[b]) for a, b in pairs]
    topology = PairTopology()
    topology.shapes = table.pair_shapes
    topology.giver = t.integers([_giver(a, b) for a, b in shapes])
    topology.combine = t.integers(
        [max(COMBINE_MODES.index(a.friction_combine), COMBINE_MODES.index(b.friction_combine)) for a, b in shapes]
    )
    topology.override = t.integers(given)
    condim = [
        scene.contact_overrides[k].condim if k >= 0 else _condim(a, b) for k, (a, b) in zip(given, shapes, strict=True)
    ]
    p = PairParameters()
    p.friction = t.derived(len(pairs), vec5)
    p.solref = t.derived(len(pairs), vec2)
    p.solref_friction = t.derived(len(pairs), vec2)
    p.solimp = t.derived(len(pairs), vec5)
    p.margin = t.derived(len(pairs), real)
    p.restitution = t.derived(len(pairs), real)
    gap = [scene.contact_overrides[k].gap if k >= 0 else a.gap + b.gap for k, (a, b) in zip(given, shapes, strict=True)]
    gaps = wp.array(np.array(gap, numpy_real), dtype=real, device=table.pair_case.device)
    return ContactMixing(topology, t.integers(condim), gaps, scene.options.impacts), p


def no_pairs(device: wp.Device) -> PairTable:
    """The table of a model without contacts."""
    return PairTable.from_pairs(Scene(), np.zeros((0, 2), np.int32), device)
