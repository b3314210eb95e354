"""Contact of vertices with shapes that stand still: an elliptic cone with absolute stiffness, at the end of the step.

With n and r the gradient and value of a shape's distance at x (less the vertex's radius), u = v, D = h²k + hc, a row is
y = a + bias: y_n = n·a + (k(r + hu_n) + cu_n)/D + μ‖u_t‖/h, y_t = a_t + u_t/h. Its cost is 0 above the cone, where
y_n ≥ μ‖y_t‖; ½D(y_n² + ι‖y_t‖²) where μ|y_n|/ι ≥ ‖y_t‖ below it; and ½D(y_n − μ‖y_t‖)²/(1 + μ²/ι) between. The term
μ‖u_t‖/h takes back the lift that sliding at the start of the step would cause; ι makes sticking creep less.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.sdf import primitive_sdf
from warpsim.core.precision import mat33, quat, real, vec3
from warpsim.core.spatial import quat_rotate, quat_rotate_back, quat_unit

STICKING = wp.constant(real(100.0))
"""ι: how much heavier friction weighs than the normal row."""


@wp.struct
class Contacts:
    """Shapes and how vertices touch them; normals and biases are those of the step."""

    count: int
    kind: wp.array(dtype=wp.int32)  # (n,) codes of `collision.kinds`
    position: wp.array2d(dtype=vec3)  # (W, n) m
    rotation: wp.array2d(dtype=quat)  # (W, n)
    size: wp.array2d(dtype=vec3)  # (W, n) m
    friction: wp.array2d(dtype=real)  # (W, n) μ
    stiffness: wp.array2d(dtype=real)  # (W, vertices) k, N/m
    damping: wp.array2d(dtype=real)  # (W, vertices) c, N s/m
    radius: wp.array2d(dtype=real)  # (W, vertices) m
    normal: wp.array3d(dtype=vec3)  # (W, n, vertices)
    bias: wp.array3d(dtype=vec3)  # (W, n, vertices) y − a


@wp.func
def contact_normal(kind: int, position: vec3, rotation: quat, size: vec3, x: vec3) -> tuple[real, vec3]:
    """Distance from a shape and its gradient, in the world."""
    turn = quat_unit(rotation)
    distance, slope = primitive_sdf(kind, size, quat_rotate_back(turn, x - position))
    return distance, quat_rotate(turn, slope)


@wp.func
def contact_bias(n: vec3, r: real, v: vec3, mu: real, k: real, c: real, h: real) -> vec3:
    """y − a of a vertex at distance r that moves at v."""
    along = wp.dot(n, v)
    slip = v - along * n
    gap = (k * (r + h * along) + c * along) / (h * h * k + h * c) + mu * wp.length(slip) / h
    return gap * n + slip / h


@wp.func
def contact_gradient(n: vec3, y: vec3, weight: real, mu: real) -> vec3:
    """Gradient of a row's cost by a: the force that is missing, N."""
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
def contact_weight(c: Contacts, w: int, i: int, h: real) -> real:
    """D of a vertex, kg."""
    return h * (h * c.stiffness[w, i] + c.damping[w, i])


@wp.func
def prepare_contacts(c: Contacts, w: int, h: real, x: wp.array2d(dtype=vec3), v: wp.array2d(dtype=vec3)):
    """Normals and biases of all vertices at the start of a step."""
    for s in range(c.count):
        for i in range(x.shape[1]):
            distance, n = contact_normal(c.kind[s], c.position[w, s], c.rotation[w, s], c.size[w, s], x[w, i])
            r = distance - c.radius[w, i]
            c.normal[w, s, i] = n
            c.bias[w, s, i] = contact_bias(n, r, v[w, i], c.friction[w, s], c.stiffness[w, i], c.damping[w, i], h)


@wp.kernel
def contact_work(
    kind: wp.array(dtype=wp.int32),
    # copies for each pair
    x: wp.array3d(dtype=vec3),
    v: wp.array3d(dtype=vec3),
    a: wp.array3d(dtype=vec3),
    multiplier: wp.array3d(dtype=vec3),
    position: wp.array3d(dtype=vec3),
    rotation: wp.array3d(dtype=quat),
    size: wp.array3d(dtype=vec3),
    friction: wp.array3d(dtype=real),
    stiffness: wp.array3d(dtype=real),
    damping: wp.array3d(dtype=real),
    radius: wp.array3d(dtype=real),
    h: wp.array3d(dtype=real),
    # out
    work: wp.array3d(dtype=real),
):
    """λᵀ∇s of each pair of a shape and a vertex, at fixed a."""
    w, s, i = wp.tid()
    distance, n = contact_normal(kind[s], position[w, s, i], rotation[w, s, i], size[w, s, i], x[w, s, i])
    step, k, c = h[w, s, i], stiffness[w, s, i], damping[w, s, i]
    mu = friction[w, s, i]
    bias = contact_bias(n, distance - radius[w, s, i], v[w, s, i], mu, k, c, step)
    weight = step * (step * k + c)
    work[w, s, i] = wp.dot(multiplier[w, s, i], contact_gradient(n, a[w, s, i] + bias, weight, mu))
