"""Rotations: matrices, unit quaternions (scalar first), axis-angle and roll-pitch-yaw.

Quaternions and vectors are `(4, ...)` and `(3, ...)`, matrices `(3, 3, ...)`: trailing axes are batch axes.
"""

from typing import Any

import jax.numpy as jnp

from jaxdyn._numerics import sinc, sincos


def _stack(*rows):
    rows = jnp.broadcast_arrays(*(jnp.asarray(x) for x in rows))
    return jnp.stack(rows)


def _stack_matrix(m):
    flat = _stack(*(x for row in m for x in row))
    return flat.reshape(3, 3, *flat.shape[1:])


def quaternion_to_matrix(q):
    """Rotation matrix of a quaternion of any non-zero length, `q v q^-1` (Shuster 1993, equation 117).

    Division by |q|^2 makes the result a rotation for every q, so that an optimiser may change a quaternion leaf
    without constraints.
    """
    w, x, y, z = q[0], q[1], q[2], q[3]
    s = 2 / (w * w + x * x + y * y + z * z)
    return _stack_matrix(
        (
            (1 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)),
            (s * (x * y + w * z), 1 - s * (x * x + z * z), s * (y * z - w * x)),
            (s * (x * z - w * y), s * (y * z + w * x), 1 - s * (x * x + y * y)),
        )
    )


def matrix_to_quaternion(m):
    """Unit quaternion of a rotation matrix, from its largest component (Shepperd 1978).

    All four candidates are computed and the best-conditioned one is selected, so that value and gradient
    are finite at half turns as well.
    """
    m = jnp.asarray(m)
    t = jnp.stack(
        [
            1 + m[0, 0] + m[1, 1] + m[2, 2],
            1 + m[0, 0] - m[1, 1] - m[2, 2],
            1 - m[0, 0] + m[1, 1] - m[2, 2],
            1 - m[0, 0] - m[1, 1] + m[2, 2],
        ]
    )
    a, b, c = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    d, e, f = m[1, 0] + m[0, 1], m[0, 2] + m[2, 0], m[2, 1] + m[1, 2]
    candidates = jnp.stack(
        [
            jnp.stack([t[0], a, b, c]),
            jnp.stack([a, t[1], d, e]),
            jnp.stack([b, d, t[2], f]),
            jnp.stack([c, e, f, t[3]]),
        ]
    )
    best = jnp.argmax(t, axis=0)
    out = candidates[0]
    largest = t[0]
    for k in range(1, 4):
        out = jnp.where(best == k, candidates[k], out)
        largest = jnp.where(best == k, t[k], largest)
    return out / (2 * jnp.sqrt(largest))


def hamilton_product(a, b) -> tuple[Any, Any, Any, Any]:
    """Components of the Hamilton product `a b`; numbers, numpy and JAX arrays may be components."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def quaternion_multiply(a, b):
    """Hamilton product `a b` as a JAX array: the rotation b followed by the rotation a."""
    return _stack(*hamilton_product(a, b))


def quaternion_conjugate(q):
    """Conjugate; the inverse rotation of a unit quaternion."""
    return _stack(q[0], -q[1], -q[2], -q[3])


def quaternion_normalize(q):
    """`q / |q|`."""
    return q / jnp.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])


def quaternion_exp(r):
    """Unit quaternion of the rotation vector r (angle times axis, rad), smooth at zero."""
    half2 = (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]) / 4
    s = sinc(half2) / 2
    return _stack(_cos_of_root(half2), s * r[0], s * r[1], s * r[2])


def _cos_of_root(x2):
    small = x2 < 1e-2
    x = jnp.sqrt(jnp.where(small, 1, x2))
    y = jnp.where(small, x2, 0)
    series = 1 - y / 2 * (1 - y / 12 * (1 - y / 30 * (1 - y / 56 * (1 - y / 90))))
    return jnp.where(small, series, jnp.cos(x))


def quaternion_log(q):
    """Rotation vector of a unit quaternion, with an angle of at most pi, smooth at the identity."""
    q = jnp.where(q[0] < 0, -q, q)
    n2 = q[1] * q[1] + q[2] * q[2] + q[3] * q[3]
    small = n2 < 1e-4
    n = jnp.sqrt(jnp.where(small, 1, n2))
    y = jnp.where(small, n2, 0) / jnp.where(small, q[0] * q[0], 1)
    series = (2 - y * (2 / 3 - y * (2 / 5 - y * (2 / 7 - y * 2 / 9)))) / jnp.where(small, q[0], 1)
    s = jnp.where(small, series, 2 * jnp.arctan2(n, q[0]) / n)
    return _stack(s * q[1], s * q[2], s * q[3])


def axis_angle_to_matrix(axis, angle):
    """Rotation by `angle` about a unit `axis`: `c 1 + s [a] + (1 - c) a a^T` (Rodrigues)."""
    s, c = sincos(angle)
    d = 1 - c
    x, y, z = axis[0], axis[1], axis[2]
    return _stack_matrix(
        (
            (c + d * x * x, d * x * y - s * z, d * x * z + s * y),
            (d * x * y + s * z, c + d * y * y, d * y * z - s * x),
            (d * x * z - s * y, d * y * z + s * x, c + d * z * z),
        )
    )


def rotation_vector_to_matrix(r):
    """Rotation matrix `exp([r])` of a rotation vector (rad), smooth at zero."""
    return quaternion_to_matrix(quaternion_exp(r))


def matrix_to_rotation_vector(m):
    """Rotation vector `log(m)`, with an angle of at most pi."""
    return quaternion_log(matrix_to_quaternion(m))


def rpy_to_matrix(rpy):
    """Rotation matrix of fixed-axis roll, pitch, yaw (rad) as in URDF: `Rz(yaw) Ry(pitch) Rx(roll)`."""
    (sr, sp, sy), (cr, cp, cy) = sincos(jnp.asarray(rpy))
    return _stack_matrix(
        (
            (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
            (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
            (-sp, cp * sr, cp * cr),
        )
    )
