"""MuJoCo's "contact" sensors: what is known of the contacts between two things.

Which contacts fill the slots is decided untaped; what is told of them carries gradients.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import quat_mul, quat_rotate, quat_rotate_back
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import SiteParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.sensors.layout import SensorTopology
from warpsim.rigid.sensors.loads import Touches
from warpsim.rigid.sensors.volumes import holds
from warpsim.rigid.work.state import Work

_FIRST = wp.constant(0)
_DEEPEST = wp.constant(1)
_STRONGEST = wp.constant(2)
_NET = wp.constant(3)


@wp.func
def _direction(c: SensorTopology, x: Touches, w: int, n: int, k: int) -> int:
    """1 if contact k goes from the first thing of sensor n to its second, −1 the other way, 0 if it is no such one."""
    a = x.pair_shapes[x.pair[w, k], 0]
    b = x.pair_shapes[x.pair[w, k], 1]
    if c.watch_first[n, a] == 1 and c.watch_second[n, b] == 1:
        return 1
    if c.watch_first[n, b] == 1 and c.watch_second[n, a] == 1:
        return -1
    return 0


@wp.func
def _norm3(f: vec6) -> real:
    square = f[0] * f[0] + f[1] * f[1] + f[2] * f[2]
    if square > real(0.0):
        return wp.sqrt(square)
    return real(0.0)


@wp.kernel(enable_backward=False)
def _choose_kernel(
    # topology, parameters
    c: SensorTopology,
    t: Topology,
    site: SiteParameters,
    # work in
    x: Touches,
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    # out
    sign: wp.array3d(dtype=wp.int32),
    slot: wp.array3d(dtype=wp.int32),
):
    """`sign` (W, sensors, mc): direction of each contact; `slot` (W, sensors, slots): contact in it or −1."""
    w = natural(wp.tid())
    places = wp.min(x.count[w], x.pair.shape[1])
    for n in range(c.watch.shape[0]):
        for k in range(places):
            sign[w, n, k] = _direction(c, x, w, n, k)
            s = c.watch_site[n]
            if s >= 0:
                link = t.body_link[c.site_body[s]]
                turn = link_rotation[w, link]
                p = link_position[w, link] + quat_rotate(turn, site.position[w, s])
                o = quat_rotate_back(quat_mul(turn, site.rotation[w, s]), x.point[w, k] - p)
                sign[w, n, k] = sign[w, n, k] * holds(c.form[s], c.extent[s], o)
        for e in range(c.watch_slots[n]):
            best = int(-1)
            value = real(0.0)
            for k in range(places):
                taken = int(0)
                for g in range(e):
                    if slot[w, n, g] == k:
                        taken = 1
                if sign[w, n, k] != 0 and taken == 0:
                    rank = real(0.0)
                    if c.watch_choice[n] == _DEEPEST:
                        rank = x.distance[w, k]
                    elif c.watch_choice[n] == _STRONGEST:
                        rank = -_norm3(x.force[w, k])
                    if best < 0 or rank < value:
                        best = k
                        value = rank
            slot[w, n, e] = best


@wp.func
def _write(out: wp.array2d(dtype=real), w: int, k: int, wanted: int, v: vec3) -> int:
    """Three numbers at place k where they are wanted; returns the next place."""
    if wanted == 0:
        return k
    for e in range(3):
        out[w, k + e] = v[e]
    return k + 3


@wp.func
def _tell(
    out: wp.array2d(dtype=real),
    w: int,
    start: int,
    data: int,
    found: int,
    force: vec3,
    torque: vec3,
    distance: real,
    point: vec3,
    normal: vec3,
    tangent: vec3,
):
    """One slot, in the order of CONTACT_DATA, those of `data`'s bits."""
    k = int(start)
    if data % 2 == 1:
        out[w, k] = real(found)
        k += 1
    k = _write(out, w, k, (data / 2) % 2, force)
    k = _write(out, w, k, (data / 4) % 2, torque)
    if (data / 8) % 2 == 1:
        out[w, k] = distance
        k += 1
    k = _write(out, w, k, (data / 16) % 2, point)
    k = _write(out, w, k, (data / 32) % 2, normal)
    k = _write(out, w, k, (data / 64) % 2, tangent)


@wp.func
def _found(sign: wp.array3d(dtype=wp.int32), w: int, n: int, places: int) -> int:
    total = int(0)
    for k in range(places):
        total += wp.abs(sign[w, n, k])
    return total


@wp.func
def _moment(x: Touches, sign: wp.array3d(dtype=wp.int32), w: int, n: int, places: int) -> vec3:
    """Sum of the contacts' points, times the sizes of their forces."""
    total = vec3()
    for k in range(places):
        total += x.point[w, k] * (_norm3(x.force[w, k]) * real(wp.abs(sign[w, n, k])))
    return total


@wp.func
def _weight(x: Touches, sign: wp.array3d(dtype=wp.int32), w: int, n: int, places: int) -> real:
    """Sum of the sizes of the contacts' forces."""
    total = real(0.0)
    for k in range(places):
        total += _norm3(x.force[w, k]) * real(wp.abs(sign[w, n, k]))
    return total


@wp.func
def _net(x: Touches, sign: wp.array3d(dtype=wp.int32), w: int, n: int, places: int, center: vec3, turning: int) -> vec3:
    """Sum of the contacts' forces (turning 0) or torques about the center (1) on the second thing, world axes."""
    total = vec3()
    for k in range(places):
        if sign[w, n, k] != 0:
            f = x.force[w, k]
            axes = wp.transpose(x.frame[w, k])
            push = axes * vec3(f[0], f[1], f[2])
            value = push
            if turning == 1:
                value = axes * vec3(f[3], f[4], f[5]) + wp.cross(x.point[w, k] - center, push)
            total += value * real(sign[w, n, k])
    return total


@wp.kernel
def _tell_kernel(
    # topology
    c: SensorTopology,
    # work in
    x: Touches,
    sign: wp.array3d(dtype=wp.int32),
    slot: wp.array3d(dtype=wp.int32),
    # out
    out: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    places = wp.min(x.count[w], x.pair.shape[1])
    for n in range(c.watch.shape[0]):
        i = c.watch[n]
        found = _found(sign, w, n, places)
        zero = vec3(real(0.0), real(0.0), real(0.0))
        for e in range(c.watch_slots[n]):
            start = c.start[i] + e * c.watch_size[n]
            k = slot[w, n, e]
            if k < 0 or (c.watch_choice[n] == _NET and e > 0):
                _tell(out, w, start, c.watch_data[n], 0, zero, zero, real(0.0), zero, zero, zero)
            elif c.watch_choice[n] == _NET:
                weight = _weight(x, sign, w, n, places)
                p = _moment(x, sign, w, n, places) / wp.max(weight, real(1e-15))
                ex = vec3(real(1.0), real(0.0), real(0.0))
                ey = vec3(real(0.0), real(1.0), real(0.0))
                push = _net(x, sign, w, n, places, p, 0)
                turn = _net(x, sign, w, n, places, p, 1)
                _tell(out, w, start, c.watch_data[n], found, push, turn, real(0.0), p, ex, ey)
            else:
                f = x.force[w, k]
                frame = x.frame[w, k]
                s = real(sign[w, n, k])
                push = vec3(f[0], f[1], s * f[2])
                turn = vec3(f[3], f[4], s * f[5])
                normal = vec3(frame[0, 0], frame[0, 1], frame[0, 2]) * s
                tangent = vec3(frame[1, 0], frame[1, 1], frame[1, 2]) * s
                d = x.distance[w, k]
                _tell(out, w, start, c.watch_data[n], found, push, turn, d, x.point[w, k], normal, tangent)


def measure_contacts(
    m: Model, c: SensorTopology, work: Work, touches: Touches, sign: wp.array, slot: wp.array, out: wp.array
) -> None:
    """Writes them to the measurement vector (W, size); `sign` and `slot` are space for which contacts count."""
    wp.launch(
        _choose_kernel,
        dim=m.worlds,
        inputs=[c, m.topology, m.site, touches, work.link_position, work.link_rotation],
        outputs=[sign, slot],
        device=m.device,
        record_tape=False,
    )
    wp.launch(_tell_kernel, dim=m.worlds, inputs=[c, touches, sign, slot], outputs=[out], device=m.device)
