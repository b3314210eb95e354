"""Tendons of a scene → topology and parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import warp as wp

from warpsim.core.precision import real, vec2
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.compile.inverse_weights import InverseWeights
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import TendonParameters
from warpsim.rigid.model.tables import Tables
from warpsim.rigid.model.tendons import TendonTopology
from warpsim.rigid.model.topology import Layout
from warpsim.scene import Scene


@dataclass
class _Span:
    """From one site to the next."""

    sites: tuple[int, int]
    bodies: tuple[int, int, int]
    shape: int
    cylinder: int
    side: int
    share: float
    crank: int
    """Tendon whose rod it is, or -1."""


@dataclass
class _Terms:
    """Columns of the topology in the making."""

    start: list[int] = field(default_factory=lambda: [0])
    q: list[int] = field(default_factory=list)
    dof: list[int] = field(default_factory=list)
    coefficient: list[float] = field(default_factory=list)
    span_start: list[int] = field(default_factory=lambda: [0])
    spans: list[_Span] = field(default_factory=list)
    pulls: list[list[int]] = field(default_factory=list)


def _pairs(starts: list[int], dofs: list[int], rows: SimpleNamespace) -> list[tuple[int, int, int, int]]:
    """(tendon, term a, term b, entry of the mass matrix or -1) of all terms on one chain."""
    chain = _chains(rows)
    pairs = []
    for tendon in range(len(starts) - 1):
        terms = range(starts[tendon], starts[tendon + 1])
        for a in terms:
            for b in terms:
                if dofs[b] in chain[dofs[a]]:
                    pairs.append((tendon, a, b, int(rows.row_start[dofs[a]] + chain[dofs[a]].index(dofs[b]))))
                elif dofs[a] in chain[dofs[b]]:
                    pairs.append((tendon, a, b, -1))
    return pairs


def _chains(rows: SimpleNamespace) -> list[list[int]]:
    """Each dof's way to the world, itself included."""
    return [rows.row_column[rows.row_start[d] : rows.row_start[d + 1]].tolist() for d in range(rows.nv)]


def _spans(scene: Scene, layout: Layout, place: int) -> list[_Span]:
    tendon = scene.tendons[place]
    site_body = {site.name: layout.body(site.body) for site in scene.sites}
    shapes = {shape.name: shape for shape in scene.shapes}
    spans, divisor = [], 1.0
    for n, point in enumerate(tendon.path[:-1]):
        after = tendon.path[n + 1]
        if point.kind == "pulley":
            divisor = point.divisor
        if point.kind != "site" or after.kind == "pulley":
            continue
        wrap = after if after.kind == "shape" else None
        end = tendon.path[n + 2] if wrap else after
        shape = shapes[wrap.name] if wrap else None
        middle = layout.body(shape.body) if shape else -1
        side = layout.site_names.index(wrap.side) if wrap and wrap.side is not None else -1
        spans.append(
            _Span(
                sites=(layout.site_names.index(point.name), layout.site_names.index(end.name)),
                bodies=(site_body[point.name], middle, site_body[end.name]),
                shape=layout.shape_names.index(shape.name) if shape else -1,
                cylinder=int(shape is not None and shape.kind == "cylinder"),
                side=side,
                share=1.0 / divisor,
                crank=place if tendon.rod > 0 else -1,
            )
        )
    return spans


def _add_spatial(terms: _Terms, spans: list[_Span], rows: SimpleNamespace) -> None:
    """Terms of all dofs that move a body on the path, but those that move all of it alike."""
    chains = _chains(rows)
    moved: dict[int, list[int]] = {}
    first = len(terms.spans)
    for n, span in enumerate(spans):
        ends = [
            set(chains[rows.body_last_dof[b] - 1]) if b > 0 and rows.body_last_dof[b] else set() for b in span.bodies
        ]
        used = [k for k in range(3) if span.bodies[k] >= 0]
        common = set.intersection(*(ends[k] for k in used))
        for k in used:
            for d in ends[k] - common:
                moved.setdefault(d, []).append(3 * (first + n) + k)
    for d in sorted(moved):
        terms.q.append(0)
        terms.dof.append(d)
        terms.coefficient.append(0.0)
        terms.pulls.append(sorted(moved[d]))
    terms.spans += spans


def tendons(t: Tables, scene: Scene, layout: Layout, rows: SimpleNamespace) -> tuple[TendonTopology, TendonParameters]:
    """Topology and parameters of all tendons; slack lengths of spatial ones are set by `set_slack_lengths`."""
    terms, springs = _Terms(), []
    reference = t.authored["joint.reference"].numpy()[0]
    for place, tendon in enumerate(scene.tendons):
        slack = 0.0
        if tendon.path:
            _add_spatial(terms, _spans(scene, layout, place), rows)
        else:
            index = [layout.joint(name) for name in tendon.joints]
            terms.q += [int(layout.joint_q[j]) for j in index]
            terms.dof += [int(layout.joint_dof[j]) for j in index]
            terms.coefficient += list(tendon.coefficients)
            terms.pulls += [[] for _ in index]
            slack = sum(c * reference[layout.joint_q[j]] for c, j in zip(tendon.coefficients, index, strict=True))
        terms.start.append(len(terms.dof))
        terms.span_start.append(len(terms.spans))
        springs.append((float(slack), float(slack)) if tendon.spring_range is None else tendon.spring_range)
    p = TendonParameters()
    p.coefficient = t.parameter("tendon.coefficient", terms.coefficient, real)
    p.stiffness = t.parameter("tendon.stiffness", [x.stiffness for x in scene.tendons], real)
    p.damping = t.parameter("tendon.damping", [x.damping for x in scene.tendons], real)
    p.armature = t.parameter("tendon.armature", [x.armature for x in scene.tendons], real)
    p.spring_range = t.parameter("tendon.spring_range", springs, vec2)
    p.rod = t.parameter("tendon.rod", [x.rod for x in scene.tendons], real)
    return _topology(t, scene, terms, rows), p


def _topology(t: Tables, scene: Scene, terms: _Terms, rows: SimpleNamespace) -> TendonTopology:
    x = TendonTopology()
    x.count = len(scene.tendons)
    x.spatial = t.integers([int(bool(tendon.path)) for tendon in scene.tendons])
    x.start, x.q, x.dof = t.integers(terms.start), t.integers(terms.q), t.integers(terms.dof)
    pairs = _pairs(terms.start, terms.dof, rows)
    x.pair_count = len(pairs)
    for k, name in enumerate(("pair_tendon", "pair_a", "pair_b", "pair_entry")):
        setattr(x, name, t.integers([pair[k] for pair in pairs]))
    spans = terms.spans
    x.span_count = len(spans)
    x.span_start = t.integers(terms.span_start)
    x.span_site = _integers(t, [span.sites for span in spans], 2)
    x.span_body = _integers(t, [span.bodies for span in spans], 3)
    x.span_shape = t.integers([span.shape for span in spans])
    x.span_cylinder = t.integers([span.cylinder for span in spans])
    x.span_side = t.integers([span.side for span in spans])
    x.span_crank = t.integers([span.crank for span in spans])
    x.span_share = wp.array([span.share for span in spans], dtype=real, device=t.device)
    x.pull_start = t.integers(np.cumsum([0, *(len(pulls) for pulls in terms.pulls)]).tolist())
    x.pull_place = t.integers([place for pulls in terms.pulls for place in pulls])
    return x


def _integers(t: Tables, values: list[tuple[int, ...]], width: int) -> wp.array:
    return wp.array(np.array(values, np.int32).reshape(-1, width), dtype=wp.int32, device=t.device)


def set_slack_lengths(model: Model, scene: Scene) -> None:
    """Springs of spatial tendons that say nothing else are slack at the reference configuration.

    The numbers become authored parameters: moving a site later does not change them.
    """
    places = [i for i, tendon in enumerate(scene.tendons) if tendon.path and tendon.spring_range is None]
    if not places:
        return
    Derivation(model)  # fills masses and unit quaternions, on which the reference configuration depends
    InverseWeights(model).run(model)
    springs = model.authored["tendon.spring_range"].numpy()
    springs[:, places] = model.weight.tendon_length.numpy()[:, places, None]
    model.authored["tendon.spring_range"].assign(springs)
