"""Authored parameters → physical parameters, once per rollout, on a tape of their own.

Unit axes and quaternions; mass, center and inertia from shapes; the boxes of equal inertia that feel the medium;
contact parameters of pairs; inverse weights at the reference configuration. The adjoint runs once, after the last
step's, and turns gradients of physical parameters into gradients of authored ones.
"""

from __future__ import annotations

from contextlib import nullcontext

import warp as wp

from warpsim.core.precision import mat33, quat, real, vec3, vec6
from warpsim.core.spatial import quat_matrix, quat_mul, quat_unit
from warpsim.rigid.compile.inverse_weights import InverseWeights
from warpsim.rigid.compile.principal_axes import principal_axes
from warpsim.rigid.model.actuators import DriveTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.shape_mass import _body_kernel, _shape_kernel

# Principal moments closer than this (relative) count as equal: their axes carry no derivative.
_EQUAL_MOMENTS = wp.constant(real(1e-6))
_SMALLEST = wp.constant(real(1e-15))


@wp.kernel
def _unit_quat_kernel(authored: wp.array2d(dtype=quat), unit: wp.array2d(dtype=quat)):
    w, i = wp.tid()
    unit[w, i] = quat_unit(authored[w, i])


@wp.kernel
def _unit_axis_kernel(authored: wp.array2d(dtype=vec3), unit: wp.array2d(dtype=vec3)):
    w, i = wp.tid()
    a = authored[w, i]
    unit[w, i] = a / wp.sqrt(wp.dot(a, a))


@wp.func
def _in_axes(r: mat33, i: vec6) -> mat33:
    full = mat33(i[0], i[3], i[4], i[3], i[1], i[5], i[4], i[5], i[2])
    return wp.transpose(r) * full * r


@wp.func
def _tilt(off: real, a: real, b: real) -> real:
    """Half the first-order turn of two principal axes by an off-diagonal moment; zero in value, right in derivative."""
    gap = b - a
    if wp.abs(gap) <= _EQUAL_MOMENTS * (wp.abs(a) + wp.abs(b)):
        return real(0.0)
    return real(0.5) * off / gap


@wp.func
def _edge(sum_of_two: real, other: real, mass: real) -> real:
    x = (sum_of_two - other) / mass * real(6.0)
    if x <= _SMALLEST:
        return wp.sqrt(_SMALLEST)
    return wp.sqrt(x)


@wp.kernel
def _fluid_kernel(
    # principal axes of each body, held fixed
    axes: wp.array2d(dtype=quat),
    # parameters
    mass: wp.array2d(dtype=real),
    inertia: wp.array2d(dtype=vec6),
    # out
    box: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
):
    w, b = wp.tid()
    m = mass[w, b]
    if m > _SMALLEST:
        i = _in_axes(quat_matrix(axes[w, b]), inertia[w, b])
        x = i[0, 0]
        y = i[1, 1]
        z = i[2, 2]
        box[w, b] = vec3(_edge(y + z, x, m), _edge(x + z, y, m), _edge(x + y, z, m))
        # perturbation of eigenvectors: axis i turns toward j by I_ij / (I_i − I_j)
        turn = quat(real(1.0), _tilt(i[1, 2], z, y), _tilt(i[0, 2], x, z), _tilt(i[0, 1], y, x))
        rotation[w, b] = quat_unit(quat_mul(axes[w, b], turn))
    else:
        box[w, b] = vec3(real(0.0), real(0.0), real(0.0))
        rotation[w, b] = quat(real(1.0), real(0.0), real(0.0), real(0.0))


@wp.kernel
def _drive_kernel(
    # topology, authored
    t: DriveTopology,
    authored: wp.array2d(dtype=real),
    # parameters
    dof_weight: wp.array2d(dtype=real),
    # out
    gain: wp.array2d(dtype=real),
):
    """Gains of acceleration drives times the effective inertia at the reference configuration."""
    w, i = wp.tid()
    if t.per_inertia[i] == 1:
        gain[w, i] = authored[w, i] / dof_weight[w, t.dof[i]]
    else:
        gain[w, i] = authored[w, i]


class Derivation:
    """The derive stage of one model: `run` fills the physical parameters, `backward` pulls gradients back."""

    def __init__(self, model: Model):
        self.model = model
        self.tape: wp.Tape | None = None
        w, device = model.worlds, model.device
        count = len(model.layout.shape_names)
        self._shape_mass = wp.zeros((w, count), dtype=real, device=device, requires_grad=True)
        self._shape_com = wp.zeros((w, count), dtype=vec3, device=device, requires_grad=True)
        self._shape_inertia = wp.zeros((w, count), dtype=vec6, device=device, requires_grad=True)
        self._axes = wp.zeros((w, model.nbody), dtype=quat, device=device)
        self._units()
        self._masses()
        weighed = model.options.constraints or bool(model.drive_topology.per_inertia.numpy().any())
        self._weights = InverseWeights(model) if weighed else None

    def run(self, *, record: bool = False) -> None:
        """Derives; with `record`, on a tape, for physical parameters that carry gradients."""
        self.tape = wp.Tape() if record else None
        with nullcontext() if self.tape is None else self.tape:
            self._units()
            self._masses()
            if self.model.has_medium or self.model.measures_inertia:
                self._boxes()
            self.model.contact_mixing.run(self.model.authored, self.model.world.timestep, self.model.pair)
            if self._weights is not None:
                self._weights.run(self.model)
            self._drive_gains()

    def backward(self) -> None:
        """Adds to the authored gradients what the physical ones imply; the latter are consumed."""
        assert self.tape is not None, "run(record=True) comes first"
        for array in (self._shape_mass, self._shape_com, self._shape_inertia):
            array.grad.zero_()
        if self._weights is not None:
            self._weights.zero_adjoints()
        self.tape.backward()

    def _units(self) -> None:
        """Normalizes quaternions and axes."""
        m, a = self.model, self.model.authored
        for name, unit, kernel in (
            ("body.rotation", m.body.rotation, _unit_quat_kernel),
            ("site.rotation", m.site.rotation, _unit_quat_kernel),
            ("shape.rotation", m.shape.rotation, _unit_quat_kernel),
            ("equality.relative_rotation", m.equality.relative_rotation, _unit_quat_kernel),
            ("equality.axes", m.equality.axes, _unit_quat_kernel),
            ("joint.axis", m.joint.axis, _unit_axis_kernel),
        ):
            if unit.size:
                wp.launch(kernel, dim=unit.shape, inputs=[a[name]], outputs=[unit], device=m.device)

    def _masses(self) -> None:
        """Mass, center and inertia of shapes, then of bodies."""
        m, a = self.model, self.model.authored
        if self._shape_mass.size:
            wp.launch(
                _shape_kernel,
                dim=self._shape_mass.shape,
                inputs=[
                    m.shape_mass_topology,
                    a["shape.size"],
                    a["shape.density"],
                    a["shape.mass"],
                    a["shape.position"],
                    a["shape.rotation"],
                ],
                outputs=[self._shape_mass, self._shape_com, self._shape_inertia],
                device=m.device,
            )
        wp.launch(
            _body_kernel,
            dim=(m.worlds, m.nbody),
            inputs=[
                m.shape_mass_topology,
                a["body.mass"],
                a["body.com"],
                a["body.inertia"],
                self._shape_mass,
                self._shape_com,
                self._shape_inertia,
            ],
            outputs=[m.body.mass, m.body.com, m.body.inertia],
            device=m.device,
        )

    def _drive_gains(self) -> None:
        """Stiffness and damping of drives, some of which are authored per unit of inertia."""
        m = self.model
        for name, gain in (("drive.stiffness", m.drive.stiffness), ("drive.damping", m.drive.damping)):
            if gain.size:
                wp.launch(
                    _drive_kernel,
                    dim=gain.shape,
                    inputs=[m.drive_topology, m.authored[name], m.weight.dof],
                    outputs=[gain],
                    device=m.device,
                )

    def _boxes(self) -> None:
        """Boxes of equal inertia, whose axes are found off the tape."""
        m = self.model
        self._axes.assign(principal_axes(m.body.inertia.numpy(), m.inertia_axes))
        wp.launch(
            _fluid_kernel,
            dim=(m.worlds, m.nbody),
            inputs=[self._axes, m.body.mass, m.body.inertia],
            outputs=[m.fluid.box, m.fluid.rotation],
            device=m.device,
        )
