"""Vectors and matrices as tuples of components.

A component is an array of any shape, so that one line of code serves a scalar, a row of bodies and a block of
lanes (samples of a batch). Motion vectors are `(w, v)`, force vectors `(n, f)`, each a tuple of two 3-tuples. Symmetric
3x3 matrices are `(xx, xy, xz, yy, yz, zz)`.
"""


def vector(x):
    """Components of an array along its second axis: `(n, 3, ...)` to three arrays `(n, ...)`."""
    return tuple(x[:, i] for i in range(x.shape[1]))


def matrix(x):
    """Components of `(n, 3, 3, ...)`."""
    return tuple(tuple(x[:, i, j] for j in range(3)) for i in range(3))


def add(a, *rest):
    """Sum of two or more vectors."""
    for b in rest:
        a = tuple(x + y for x, y in zip(a, b, strict=True))
    return a


def sub(a, b):
    """`a - b`."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def neg(a):
    """`-a`."""
    return tuple(-x for x in a)


def scale(s, a):
    """`s a`."""
    return tuple(s * x for x in a)


def dot(a, b):
    """`a . b`."""
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def cross(a, b):
    """`a x b`."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def rotate(m, x):
    """`m x`."""
    return tuple(dot(row, x) for row in m)


def rotate_back(m, x):
    """`m^T x`."""
    return tuple(m[0][i] * x[0] + m[1][i] * x[1] + m[2][i] * x[2] for i in range(3))


def matmul(a, b):
    """`a b` of two 3x3 matrices."""
    return tuple(tuple(row[0] * b[0][j] + row[1] * b[1][j] + row[2] * b[2][j] for j in range(3)) for row in a)


def transpose(m):
    """`m^T`."""
    return tuple(zip(*m, strict=True))


def skew(a):
    """`[a]`; the version for arrays is `jaxdyn.spatial.skew`."""
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
