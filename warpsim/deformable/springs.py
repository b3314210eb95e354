"""Springs from vertices to places that move by themselves: attachments that give.

The force on vertex i is −k(x⁺ − p⁺) − c(v⁺ − u⁺), with p⁺ = p + hu⁺ and u⁺ = u + hJq̈ the place and its velocity at the
end of the step: quadratic in a and q̈.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3


@wp.struct
class Springs:
    """Attachments of all worlds."""

    count: int
    vertex: wp.array(dtype=wp.int32)  # (n,)
    place: wp.array2d(dtype=vec3)  # (W, n) m, at the start of the step
    velocity: wp.array2d(dtype=vec3)  # (W, n) m/s
    acceleration: wp.array2d(dtype=vec3)  # (W, n) m/s²: Jq̈ of what carries it
    step: wp.array2d(dtype=vec3)  # (W, n) how that changes along the direction of a line search
    stiffness: wp.array2d(dtype=real)  # (W, n) N/m
    damping: wp.array2d(dtype=real)  # (W, n) N s/m


@wp.func
def pull(place: vec3, velocity: vec3, acceleration: vec3, k: real, c: real, h: real, x: vec3, v: vec3, a: vec3) -> vec3:
    """What a vertex exerts on the place it is attached to, N."""
    relative = v + h * a - velocity - h * acceleration
    return k * (x - place + h * relative) + c * relative


@wp.func
def pull_of(
    s: Springs,
    w: int,
    k: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    a: wp.array2d(dtype=vec3),
) -> vec3:
    """`pull` of spring k."""
    i = s.vertex[k]
    return pull(
        s.place[w, k],
        s.velocity[w, k],
        s.acceleration[w, k],
        s.stiffness[w, k],
        s.damping[w, k],
        h,
        x[w, i],
        v[w, i],
        a[w, i],
    )


@wp.func
def spring_weight(s: Springs, w: int, k: int, h: real) -> real:
    """h²k + hc, kg."""
    return h * (h * s.stiffness[w, k] + s.damping[w, k])


@wp.func
def add_springs(
    s: Springs,
    node: wp.array(dtype=wp.int32),
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    a: wp.array2d(dtype=vec3),
    gradient: wp.array2d(dtype=vec3),
    blocks: wp.array2d(dtype=mat33),
):
    """Adds all springs to the gradient and to the diagonal blocks of the Hessian."""
    for k in range(s.count):
        i = s.vertex[k]
        if node[i] >= 0:
            gradient[w, i] += pull_of(s, w, k, h, x, v, a)
            blocks[w, node[i]] += spring_weight(s, w, k, h) * wp.identity(n=3, dtype=real)


@wp.kernel
def spring_work(
    vertex: wp.array(dtype=wp.int32),
    place: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec3),
    acceleration: wp.array2d(dtype=vec3),
    stiffness: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    a: wp.array2d(dtype=vec3),
    multiplier: wp.array2d(dtype=vec3),
    # out
    work: wp.array(dtype=real),
):
    """λᵀ∇ of all springs of a world, at fixed a."""
    w = wp.tid()
    total = real(0.0)
    for k in range(vertex.shape[0]):
        i = vertex[k]
        force = pull(
            place[w, k],
            velocity[w, k],
            acceleration[w, k],
            stiffness[w, k],
            damping[w, k],
            time_step[w],
            x[w, i],
            v[w, i],
            a[w, i],
        )
        total += wp.dot(multiplier[w, i], force)
    work[w] = total
