"""Vectors, matrices and six-vectors as tuples of components, the form that batched kernels compute in.

A component is an array of any shape, so one line of code serves a scalar, a row of links and a block of
lanes alike. Motion vectors are `(w, v)`, force vectors `(n, f)`, each a tuple of two 3-tuples. Symmetric
3x3 matrices are `(xx, xy, xz, yy, yz, zz)`.
"""


def vector(x):
    """Components of an array along its second axis: `(n, 3, ...)` to three arrays `(n, ...)`."""
    return tuple(x[:, i] for i in range(x.shape[1]))


def matrix(x):
    """Components of `(n, 3, 3, ...)`."""
    return tuple(tuple(x[:, i, j] for j in range(3)) for i in range(3))


def add(a, *rest):
    for b in rest:
        a = tuple(x + y for x, y in zip(a, b, strict=True))
    return a


def sub(a, b):
    return tuple(x - y for x, y in zip(a, b, strict=True))


def neg(a):
    return tuple(-x for x in a)


def scale(s, a):
    return tuple(s * x for x in a)


def dot(a, b):
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def rotate(m, x):
    """`m x`."""
    return tuple(dot(row, x) for row in m)


def rotate_back(m, x):
    """`m^T x`."""
    return tuple(m[0][i] * x[0] + m[1][i] * x[1] + m[2][i] * x[2] for i in range(3))


def matmul(a, b):
    return tuple(tuple(row[0] * b[0][j] + row[1] * b[1][j] + row[2] * b[2][j] for j in range(3)) for row in a)


def transpose(m):
    return tuple(zip(*m, strict=True))


def skew(a):
    zero = 0 * a[0]
    return ((zero, -a[2], a[1]), (a[2], zero, -a[0]), (-a[1], a[0], zero))


def sym_rotate(s, x):
    """`s x` for symmetric s."""
    return (
        s[0] * x[0] + s[1] * x[1] + s[2] * x[2],
        s[1] * x[0] + s[3] * x[1] + s[4] * x[2],
        s[2] * x[0] + s[4] * x[1] + s[5] * x[2],
    )


def sym_conjugate(r, s):
    """`r s r^T` for symmetric s."""
    t = tuple(sym_rotate(s, row) for row in r)
    return (
        dot(t[0], r[0]),
        dot(t[0], r[1]),
        dot(t[0], r[2]),
        dot(t[1], r[1]),
        dot(t[1], r[2]),
        dot(t[2], r[2]),
    )


# --- six-vectors ---------------------------------------------------------------------------------


def add6(a, *rest):
    for b in rest:
        a = (add(a[0], b[0]), add(a[1], b[1]))
    return a


def scale6(s, a):
    return (scale(s, a[0]), scale(s, a[1]))


def dot6(a, b):
    return dot(a[0], b[0]) + dot(a[1], b[1])


def cross_motion(v, m):
    """`v x m`: rate of change of a motion vector carried by v."""
    return (cross(v[0], m[0]), add(cross(v[0], m[1]), cross(v[1], m[0])))


def cross_force(v, f):
    """`v x* f`: rate of change of a force vector carried by v."""
    return (add(cross(v[0], f[0]), cross(v[1], f[1])), cross(v[0], f[1]))


def motion_to_world(r, p, m):
    """Motion vector of a frame at p with axes r, referred to the origin and axes outside."""
    w = rotate(r, m[0])
    return (w, add(rotate(r, m[1]), cross(p, w)))


def force_to_local(r, p, f):
    """Force vector about the outer origin, referred to the frame at p with axes r."""
    return (rotate_back(r, sub(f[0], cross(p, f[1]))), rotate_back(r, f[1]))


def motion_to_local(r, p, m):
    return (rotate_back(r, m[0]), rotate_back(r, add(m[1], cross(m[0], p))))


def force_to_world(r, p, f):
    linear = rotate(r, f[1])
    return (add(rotate(r, f[0]), cross(p, linear)), linear)
