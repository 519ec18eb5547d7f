"""The impact at one contact with friction in two directions, integrated along the normal impulse.

    dc/dp = G (1, -mu c_t / |c_t|)

With the slip in polar coordinates, `c_t = r (cos f, sin f)`, the equations are regular in the logarithm of r. They are
integrated by the classical Runge-Kutta method over a variable that bounds the change per step of the direction, of
log r and of the normal velocity, relative to the larger of approach and slip. After the slip has stopped, the contact
sticks if the friction cone allows it, and otherwise slides in the only direction in which the slip can grow; that part
of the path is a straight line.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._numerics import pseudo_inverse, safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.contact.laws import AbstractRestitution
from jaxdyn.contact.rigid._forces import zero_speed

_STEP = 1 / 32
_STEPS = 768


class _Path(NamedTuple):
    """A point of the path of an impact."""

    #: normal impulse
    p: Array
    #: normal velocity
    cn: Array
    #: logarithm and angle of the slip
    log_slip: Array
    angle: Array
    #: tangential impulse, `(2,)`
    tangential: Array
    #: integral of the normal velocity over the normal impulse
    work: Array


def spatial_impact(law: AbstractRestitution, e, static, kinetic, delassus, rate) -> Float[Array, "3"]:
    """Normal and tangential impulses, from the rates `(c_n, c_1, c_2)` before the impact and the Delassus matrix."""
    cn, ct = rate[0], rate[1:]
    speed = safe_norm(ct)
    slides = speed > zero_speed(rate)
    fastest = jnp.maximum(-cn, speed)  # the approach can grow to the slip velocity (Painleve's paradox)
    scale = delassus[0, 0] / jnp.where(fastest > 0, fastest, 1)
    angle = jnp.arctan2(jnp.where(slides, ct[1], 0), jnp.where(slides, ct[0], 1))
    zero = jnp.zeros_like(cn)
    friction, arrest = _friction_at_rest(delassus, static, kinetic)
    stop = jnp.where(slides, 0, arrest @ ct)  # zero; with the derivative of sticking
    log_slip = jnp.log(jnp.where(slides, speed, 1))
    start = _Path(zero, cn + delassus[0, 1:] @ stop, log_slip, angle, stop, zero)
    field = lambda y: _slope(delassus, kinetic, scale, y)
    step = lambda y, h: _runge_kutta(field, y, h)

    def advance(y, _):
        new = step(y, jnp.where(slides, _STEP, 0).astype(cn.dtype))
        return new, y

    last, nodes = jax.lax.scan(advance, start, None, length=_STEPS)
    nodes = jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), nodes, last)
    gain = delassus[0] @ jnp.concatenate([jnp.ones(1, rate.dtype), friction])

    def straight(y: _Path, p):
        """The point of the straight part of the path, p after y."""
        work = y.work + y.cn * p + gain * p**2 / 2
        return _Path(y.p + p, y.cn + gain * p, y.log_slip, y.angle, y.tangential + friction * p, work)

    def locate(compressed: _Path, is_end):
        """The end of the compression, or the end of the impact where `is_end`; one program serves both."""

        def margin(y: _Path):
            expansion = law.margin(e, cn, compressed.p, -compressed.work, y.p, y.cn, y.work - compressed.work)
            return jnp.where(is_end, expansion, y.cn)

        is_past = (margin(nodes) >= 0) & (~is_end | (nodes.p >= compressed.p))
        p = jnp.where(is_end, _straight_end(law, e, cn, compressed, last, gain), -last.cn / gain)
        found = _locate(nodes, is_past, margin, step, straight(last, p))
        return found, found

    _, points = jax.lax.scan(locate, last, jnp.array([False, True]))
    compressed, end = (jax.tree.map(lambda x, k=k: x[k], points) for k in range(2))
    end = jax.tree.map(lambda x, y: jnp.where(e > 0, x, y), end, compressed)
    return jnp.concatenate([end.p[None], end.tangential])


def _slope(delassus, mu, scale, y: _Path) -> _Path:
    along = jnp.stack([jnp.cos(y.angle), jnp.sin(y.angle)])
    across = jnp.stack([-along[1], along[0]])
    normal, tangential = jnp.split(delassus @ jnp.concatenate([jnp.ones(1, along.dtype), -mu * along]), [1])
    slip = jnp.exp(y.log_slip)
    growth, turn = along @ tangential, across @ tangential
    dp = slip / (jnp.abs(growth) + jnp.abs(turn) + scale * slip + jnp.finfo(slip.dtype).tiny)
    relative = dp / jnp.maximum(slip, jnp.finfo(slip.dtype).tiny)
    return _Path(dp, normal[0] * dp, growth * relative, turn * relative, -mu * along * dp, y.cn * dp)


def _runge_kutta(field, y, h):
    """One step of the classical method; its stages are a loop, so that the field is compiled once."""
    add = lambda y, k, h: jax.tree.map(lambda a, b: a + h * b, y, k)

    def stage(carry, coefficients):
        k, total = carry
        node, weight = coefficients
        k = field(add(y, k, node * h))
        return (k, add(total, k, weight)), None

    zero = jax.tree.map(jnp.zeros_like, y)
    coefficients = jnp.array([[0, 1 / 6], [0.5, 1 / 3], [0.5, 1 / 3], [1, 1 / 6]], h.dtype)
    (_, slope), _ = jax.lax.scan(stage, (zero, zero), (coefficients[:, 0], coefficients[:, 1]))
    return add(y, slope, h)


def _locate(nodes: _Path, is_past, margin, step, otherwise: _Path) -> _Path:
    """The point at which the margin becomes zero: within the step before the first node past it, or `otherwise`.

    Newton's method; the last iteration has the derivatives of the root, and of the point there.
    """
    k = jnp.maximum(jnp.argmax(is_past) - 1, 0)
    node, end = (jax.tree.map(lambda x, i=i: x[i], nodes) for i in (k, jnp.minimum(k + 1, _STEPS)))

    def refine(h, _):
        h = jax.lax.stop_gradient(h)
        (f, point), (df, rate) = jax.jvp(lambda h: (lambda y: (margin(y), y))(step(node, h)), (h,), (jnp.ones_like(h),))
        dh = jnp.where(df > 0, -f / jax.lax.stop_gradient(jnp.where(df > 0, df, 1)), 0)
        new = h + dh
        inside = new + jax.lax.stop_gradient(jnp.clip(new, 0, _STEP) - new)
        return inside, jax.tree.map(lambda x, dx: x + dx * (inside - h), point, rate)

    a, b = margin(node), margin(end)
    guess = jnp.asarray(_STEP, a.dtype) * jnp.clip(-a / jnp.where(b > a, b - a, 1), 0, 1)
    _, path = jax.lax.scan(refine, guess, None, length=7)
    return jax.tree.map(lambda x, y: jnp.where(jnp.any(is_past), x[-1], y), path, otherwise)


def _straight_end(law, e, cn, compressed: _Path, last: _Path, gain):
    """The impulse after the last node at which the impact ends, where it ends on the straight part of the path."""
    is_before = compressed.p > last.p  # compression ends on the straight part, with zero normal velocity
    p, c = jnp.where(is_before, compressed.p, last.p), jnp.where(is_before, 0, last.cn)
    work = jnp.where(is_before, 0, last.work - compressed.work)
    return p - last.p + law.remainder(e, cn, compressed.p, -compressed.work, p, c, work, gain)


def _friction_at_rest(delassus, static, kinetic) -> tuple[Float[Array, "2"], Float[Array, "2 2"]]:
    """Friction impulse per unit of normal impulse at a contact without slip: it sticks, or starts to slide.

    Also the tangential impulse per unit of a small slip before the impact. It stops all slip of a contact that sticks.
    If the contact slides, along d, it stops the slip e across d: `-e e^T / (e^T T e)` is the limit of the derivatives
    of impacts whose slip is along d and vanishes.
    """
    tangential, coupling = delassus[1:, 1:], delassus[1:, 0]
    tolerance = jnp.asarray(jnp.finfo(coupling.dtype).eps ** 0.7, coupling.dtype)
    arrest = -pseudo_inverse(tangential, tolerance)[0]  # a planar robot has no motion across its plane
    sticking = arrest @ coupling
    force = safe_norm(sticking)
    slips = force > static
    # a slip along d with coupling - mu T d = k d: the length of d(k) = (k + mu T)^-1 coupling falls with k > 0
    eye = jnp.eye(2, dtype=coupling.dtype)
    largest = jnp.maximum(safe_norm(coupling), jnp.finfo(coupling.dtype).tiny)

    def direction(k):
        (a, b), (_, d) = k * eye + kinetic * tangential
        x, y = coupling
        return jnp.stack([d * x - b * y, a * y - b * x]) / jnp.maximum(a * d - b * b, jnp.finfo(k.dtype).tiny)

    def halve(_, bracket):
        lo, hi = bracket
        k = (lo + hi) / 2
        is_long = safe_norm(direction(k)) > 1
        return jnp.where(is_long, k, lo), jnp.where(is_long, hi, k)

    bracket = jnp.zeros_like(largest), largest
    k = jax.lax.stop_gradient(sum(jax.lax.fori_loop(0, 60, halve, bracket)) / 2)
    k = jnp.where(slips, k, largest)
    excess, slope = jax.jvp(lambda k: jnp.sum(direction(k) ** 2), (k,), (jnp.ones_like(k),))
    k = k - jnp.where(slips, (excess - 1) / jax.lax.stop_gradient(jnp.where(slope < 0, slope, -1)), 0)
    along = direction(k)
    across = jnp.stack([-along[1], along[0]])
    gain = across @ tangential @ across
    turn = -jnp.outer(across, across) / jnp.where(gain > 0, gain, 1) * (kinetic > 0)
    return jnp.where(slips, -kinetic * along, sticking), jnp.where(slips, turn, arrest)
