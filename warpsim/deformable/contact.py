"""Contact of samples with shapes, which may move: an elliptic cone with absolute stiffness, at the end of the step.

A sample is a vertex or a fixed point of a face (`samples`); x, v and a are the means of its corners'. With n and r the
gradient and value of a shape's distance at x (less the sample's radius), u the velocity of the sample less that of the
shape there, D = h²k + hc, a row is y = a + bias: y_n = n·a + (k(r + hu_n) + cu_n)/D + μ‖u_t‖/h, y_t = a_t + u_t/h. Its
cost is 0 above the cone, where y_n ≥ μ‖y_t‖; ½D(y_n² + ι‖y_t‖²) where μ|y_n|/ι ≥ ‖y_t‖ below it; and
½D(y_n − μ‖y_t‖)²/(1 + μ²/ι) between. The term μ‖u_t‖/h takes back the lift that sliding at the start of the step would
cause; ι makes sticking creep less.

a is relative to the shape: less Jq̈ of the body that carries it, at the sample, with J of the start of the step. Where
bodies are unknowns of the same solve q̈ is theirs, else it is zero.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.field_contact import hull_sdf
from warpsim.collision.grid import GridData, grid_sdf, has_grid
from warpsim.collision.kinds import HULL
from warpsim.collision.sdf import primitive_sdf
from warpsim.collision.support import HullData
from warpsim.core.precision import mat33, quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_rotate, quat_rotate_back, quat_unit
from warpsim.deformable.samples import sampled

STICKING = wp.constant(real(100.0))
"""ι: how much heavier friction weighs than the normal row."""
_NEAR = wp.constant(real(0.02))
"""m: rows of samples that are farther from a shape than this, and than what they move in some steps, are left out."""
_STEPS = wp.constant(real(4.0))


@wp.struct
class Surfaces:
    """Distance fields of the meshes and hulls among the shapes; no gradient."""

    index: wp.array(dtype=wp.int32)  # (n,) of each shape in these
    hulls: HullData
    grids: GridData


@wp.struct
class Contacts:
    """Shapes and how samples touch them; pairs, normals and biases are those of the step."""

    count: int
    samples: int
    corner: wp.array2d(dtype=wp.int32)  # (samples, 3) vertices
    share: wp.array2d(dtype=real)  # (samples, 3)
    place: wp.array2d(dtype=wp.int32)  # (samples, 6) where blocks go, see `Pattern.places`
    surfaces: Surfaces
    kind: wp.array(dtype=wp.int32)  # (n,) codes of `collision.kinds`
    position: wp.array2d(dtype=vec3)  # (W, n) m
    rotation: wp.array2d(dtype=quat)  # (W, n)
    velocity: wp.array2d(dtype=vec6)  # (W, n) rad/s, m/s: angular, then linear at the position
    size: wp.array2d(dtype=vec3)  # (W, n) m
    friction: wp.array2d(dtype=real)  # (W, n) μ
    acceleration: wp.array2d(dtype=vec6)  # (W, n) rad/s², m/s²: Jq̈, as the velocity
    step: wp.array2d(dtype=vec6)  # (W, n) how it changes along the direction of a line search
    stiffness: wp.array2d(dtype=real)  # (W, samples) k, N/m
    damping: wp.array2d(dtype=real)  # (W, samples) c, N s/m
    radius: wp.array2d(dtype=real)  # (W, samples) m
    pairs: wp.array(dtype=wp.int32)  # (W,) how many are near
    pair: wp.array2d(dtype=wp.int32)  # (W, n · samples) shape · samples + sample
    normal: wp.array2d(dtype=vec3)  # (W, n · samples), pair by pair
    bias: wp.array2d(dtype=vec3)  # (W, n · samples) y − a
    at: wp.array2d(dtype=vec3)  # (W, n · samples) m: where the sample is


@wp.func
def contact_normal(
    surfaces: Surfaces, s: int, kind: int, position: vec3, rotation: quat, size: vec3, x: vec3
) -> tuple[real, vec3]:
    """Distance from shape s and its gradient, in the world."""
    turn = quat_unit(rotation)
    local = quat_rotate_back(turn, x - position)
    if has_grid(kind):
        value, outward = grid_sdf(surfaces.grids, surfaces.index[s], size[0], local)
        return value, quat_rotate(turn, outward)
    if kind == HULL:
        above, normal = hull_sdf(surfaces.hulls, surfaces.index[s], size[0], local)
        return above, quat_rotate(turn, normal)
    distance, slope = primitive_sdf(kind, size, local)
    return distance, quat_rotate(turn, slope)


@wp.func
def velocity_at(velocity: vec6, position: vec3, x: vec3) -> vec3:
    """Of the point of a moving shape that is at x, m/s."""
    return linear(velocity) + wp.cross(angular(velocity), x - position)


@wp.func
def contact_bias(n: vec3, r: real, u: vec3, mu: real, k: real, c: real, h: real) -> vec3:
    """y − a of a sample at distance r that moves at u."""
    along = wp.dot(n, u)
    slip = u - along * n
    gap = (k * (r + h * along) + c * along) / (h * h * k + h * c) + mu * wp.length(slip) / h
    return gap * n + slip / h


@wp.func
def contact_gradient(n: vec3, y: vec3, weight: real, mu: real) -> vec3:
    """Gradient of a row's cost by a: what the sample exerts on the shape, N."""
    yn = wp.dot(n, y)
    yt = y - yn * n
    t = wp.length(yt)
    if yn >= mu * t:
        return vec3()
    if -mu * yn >= STICKING * t:
        return weight * (yn * n + STICKING * yt)
    scaled = weight * (yn - mu * t) / (real(1.0) + mu * mu / STICKING)
    if t > real(0.0):
        return scaled * (n - (mu / t) * yt)
    return scaled * n


@wp.func
def contact_cost(n: vec3, y: vec3, weight: real, mu: real) -> real:
    """A row's cost."""
    yn = wp.dot(n, y)
    t = wp.length(y - yn * n)
    if yn >= mu * t:
        return real(0.0)
    if -mu * yn >= STICKING * t:
        return real(0.5) * weight * (yn * yn + STICKING * t * t)
    gap = yn - mu * t
    return real(0.5) * weight * gap * gap / (real(1.0) + mu * mu / STICKING)


@wp.func
def contact_hessian(n: vec3, y: vec3, weight: real, mu: real) -> mat33:
    """Second derivative of a row's cost by a, kg."""
    yn = wp.dot(n, y)
    yt = y - yn * n
    t = wp.length(yt)
    if yn >= mu * t:
        return mat33()
    tangential = wp.identity(n=3, dtype=real) - wp.outer(n, n)
    if -mu * yn >= STICKING * t:
        return weight * (wp.outer(n, n) + STICKING * tangential)
    scaled = weight / (real(1.0) + mu * mu / STICKING)
    if t > real(0.0):
        side = n - (mu / t) * yt
        turn = tangential - wp.outer(yt, yt) / (t * t)
        return scaled * (wp.outer(side, side) - ((yn - mu * t) * mu / t) * turn)
    return scaled * wp.outer(n, n)


@wp.func
def contact_weight(k: real, c: real, h: real) -> real:
    """D of a row, kg."""
    return h * (h * k + c)


@wp.func
def row_weight(c: Contacts, w: int, i: int, h: real) -> real:
    """`contact_weight` of a sample."""
    return contact_weight(c.stiffness[w, i], c.damping[w, i], h)


@wp.func
def row_motion(c: Contacts, w: int, k: int, a: wp.array2d(dtype=vec3)) -> vec3:
    """y of pair k where its vertices accelerate at a, and its shape as `c.acceleration` says."""
    s, i = c.pair[w, k] // c.samples, c.pair[w, k] % c.samples
    own = sampled(c.corner, c.share, i, w, a)
    return c.bias[w, k] + own - velocity_at(c.acceleration[w, s], c.position[w, s], c.at[w, k])


@wp.func
def prepare_contacts(c: Contacts, w: int, h: real, x: wp.array2d(dtype=vec3), v: wp.array2d(dtype=vec3)):
    """Lists the pairs that are near at the start of a step, with their normals and biases."""
    if c.count > 0:
        found = int(0)
        for s in range(c.count):
            for i in range(c.samples):
                at = sampled(c.corner, c.share, i, w, x)
                distance, n = contact_normal(
                    c.surfaces, s, c.kind[s], c.position[w, s], c.rotation[w, s], c.size[w, s], at
                )
                r = distance - c.radius[w, i]
                u = sampled(c.corner, c.share, i, w, v) - velocity_at(c.velocity[w, s], c.position[w, s], at)
                if r < _NEAR + _STEPS * h * wp.length(u):
                    c.pair[w, found] = s * c.samples + i
                    c.at[w, found] = at
                    c.normal[w, found] = n
                    c.bias[w, found] = contact_bias(n, r, u, c.friction[w, s], c.stiffness[w, i], c.damping[w, i], h)
                    found += 1
        c.pairs[w] = found


@wp.func
def row_gradient(c: Contacts, w: int, s: int, i: int, h: real, x: vec3, v: vec3, a: vec3) -> vec3:
    """∇s of sample i at shape s from all that it depends on, for derivatives; N."""
    position, friction = c.position[w, s], c.friction[w, s]
    k, damping = c.stiffness[w, i], c.damping[w, i]
    distance, n = contact_normal(c.surfaces, s, c.kind[s], position, c.rotation[w, s], c.size[w, s], x)
    u = v - velocity_at(c.velocity[w, s], position, x)
    bias = contact_bias(n, distance - c.radius[w, i], u, friction, k, damping, h)
    relative = a - velocity_at(c.acceleration[w, s], position, x)
    return contact_gradient(n, relative + bias, contact_weight(k, damping, h), friction)


@wp.kernel
def contact_work(
    c: Contacts,
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    a: wp.array2d(dtype=vec3),
    multiplier: wp.array2d(dtype=vec3),
    # out
    work: wp.array(dtype=real),
):
    """λᵀ∇s of all pairs of a world, at fixed a."""
    w = wp.tid()
    h = time_step[w]
    count = c.corner.shape[0]
    total = real(0.0)
    for p in range(c.pairs[w]):
        s = c.pair[w, p] // count
        i = c.pair[w, p] % count
        row = row_gradient(
            c,
            w,
            s,
            i,
            h,
            sampled(c.corner, c.share, i, w, x),
            sampled(c.corner, c.share, i, w, v),
            sampled(c.corner, c.share, i, w, a),
        )
        total += wp.dot(sampled(c.corner, c.share, i, w, multiplier), row)
    work[w] = total
