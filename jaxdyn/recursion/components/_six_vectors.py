"""Motion vectors `(w, v)` and force vectors `(n, f)` as pairs of component triples."""

from jaxdyn.recursion.components._vectors import add, cross, dot, rotate, rotate_back, scale, sub


def add6(a, *rest):
    """Sum of two or more six-vectors."""
    for b in rest:
        a = (add(a[0], b[0]), add(a[1], b[1]))
    return a


def scale6(s, a):
    """`s a`."""
    return (scale(s, a[0]), scale(s, a[1]))


def dot6(a, b):
    """`a . b`: power of a force on a motion, or the scalar product of the components."""
    return dot(a[0], b[0]) + dot(a[1], b[1])


def cross_motion(v, m):
    """`v x m`: rate of a motion vector fixed in a body with velocity v."""
    return (cross(v[0], m[0]), add(cross(v[0], m[1]), cross(v[1], m[0])))


def cross_force(v, f):
    """`v x* f`: rate of a force vector fixed in a body with velocity v."""
    return (add(cross(v[0], f[0]), cross(v[1], f[1])), cross(v[0], f[1]))


def motion_to_world(r, p, m):
    """Motion vector from the frame at p with axes r to the outer frame."""
    w = rotate(r, m[0])
    return (w, add(rotate(r, m[1]), cross(p, w)))


def force_to_local(r, p, f):
    """Force vector from the outer frame to the frame at p with axes r."""
    return (rotate_back(r, sub(f[0], cross(p, f[1]))), rotate_back(r, f[1]))


def motion_to_local(r, p, m):
    """Motion vector from the outer frame to the frame at p with axes r."""
    return (rotate_back(r, m[0]), rotate_back(r, add(m[1], cross(m[0], p))))


def force_to_world(r, p, f):
    """Force vector from the frame at p with axes r to the outer frame."""
    linear = rotate(r, f[1])
    return (add(rotate(r, f[0]), cross(p, linear)), linear)
