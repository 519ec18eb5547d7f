"""The impact at one contact with friction in two directions, integrated along the normal impulse.

    dc/dp = G (1, -mu c_t / |c_t|)

With the slip in polar coordinates, `c_t = r (cos f, sin f)`, the equations are regular in the logarithm of r. They are
integrated over a variable in which neither the direction, nor log r, nor the normal velocity changes by more than a step
at a time (Runge-Kutta, fourth order). Where the slip has come to rest, the contact sticks if the cone allows it, and
otherwise slides on in the one direction that moves away from rest; that part of the path is a straight line.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdyn._numerics import safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.contact.laws import AbstractRestitution

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
    slides = speed > jnp.finfo(rate.dtype).eps * (1 + jnp.abs(cn))
    scale = delassus[0, 0] / jnp.where(cn < 0, -cn, 1)
    angle = jnp.arctan2(jnp.where(slides, ct[1], 0), jnp.where(slides, ct[0], 1))
    zero = jnp.zeros_like(cn)
    start = _Path(zero, cn, jnp.log(jnp.where(slides, speed, 1)), angle, jnp.zeros(2, rate.dtype), zero)
    field = lambda y: _slope(delassus, kinetic, scale, y)
    step = lambda y, h: _runge_kutta(field, y, h)

    def advance(y, _):
        new = step(y, jnp.where(slides, _STEP, 0).astype(cn.dtype))
        return new, y

    last, nodes = jax.lax.scan(advance, start, None, length=_STEPS)
    nodes = jax.tree.map(lambda x, end: jnp.concatenate([x, end[None]]), nodes, last)
    friction = _friction_at_rest(delassus, static, kinetic)
    gain = delassus[0] @ jnp.concatenate([jnp.ones(1, rate.dtype), friction])

    def straight(y: _Path, p):
        """The point of the straight part of the path, p after y."""
        work = y.work + y.cn * p + gain * p**2 / 2
        return _Path(y.p + p, y.cn + gain * p, y.log_slip, y.angle, y.tangential + friction * p, work)

    is_compressed = nodes.cn >= 0
    compressed = _locate(nodes, is_compressed, lambda y: y.cn, step, last, straight(last, -last.cn / gain))
    margin = lambda y: law.margin(e, cn, compressed.p, -compressed.work, y.p, y.cn, y.work - compressed.work)
    on_straight = straight(last, _straight_end(law, e, cn, compressed, last, gain))
    ends = (nodes.p >= compressed.p) & (margin(nodes) >= 0)
    end = _locate(nodes, ends, margin, step, last, on_straight)
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
    add = lambda y, k, h: jax.tree.map(lambda a, b: a + h * b, y, k)
    k1 = field(y)
    k2 = field(add(y, k1, h / 2))
    k3 = field(add(y, k2, h / 2))
    k4 = field(add(y, k3, h))
    return jax.tree.map(lambda a, b, c, d, e: a + h / 6 * (b + 2 * c + 2 * d + e), y, k1, k2, k3, k4)


def _locate(nodes: _Path, is_past, margin, step, last: _Path, otherwise: _Path) -> _Path:
    """The point at which the margin becomes zero: within the step before the first node past it, or `otherwise`."""
    found = jnp.any(is_past)
    k = jnp.maximum(jnp.argmax(is_past) - 1, 0)
    node = jax.tree.map(lambda x: x[k], nodes)
    end = jax.tree.map(lambda x: x[jnp.minimum(k + 1, _STEPS)], nodes)
    value = lambda h: margin(step(node, h))
    slope = lambda h: jax.jvp(value, (h,), (jnp.ones_like(h),))

    def refine(_, h):
        f, df = slope(h)
        return jnp.clip(h - f / jnp.where(df > 0, df, jnp.inf), 0, _STEP)

    a, b = margin(node), margin(end)
    guess = jnp.asarray(_STEP, a.dtype) * jnp.clip(-a / jnp.where(b > a, b - a, 1), 0, 1)
    h = jax.lax.stop_gradient(jax.lax.fori_loop(0, 6, refine, guess))
    f, df = slope(h)
    df = jax.lax.stop_gradient(df)
    h = h - jnp.where(df > 0, f / jnp.where(df > 0, df, 1), 0)
    point = step(node, h)
    return jax.tree.map(lambda x, y: jnp.where(found, x, y), point, otherwise)


def _straight_end(law, e, cn, compressed: _Path, last: _Path, gain):
    """The impulse after the last node at which the impact ends, where it ends on the straight part of the path."""
    is_before = compressed.p > last.p  # compression ends on the straight part, with zero normal velocity
    p, c = jnp.where(is_before, compressed.p, last.p), jnp.where(is_before, 0, last.cn)
    work = jnp.where(is_before, 0, last.work - compressed.work)
    return p - last.p + law.remainder(e, cn, compressed.p, -compressed.work, p, c, work, gain)


def _friction_at_rest(delassus, static, kinetic) -> Float[Array, "2"]:
    """Friction for a unit of the normal impulse at a contact without slip: it sticks, or slides away from rest."""
    tangential, coupling = delassus[1:, 1:], delassus[1:, 0]
    determinant = tangential[0, 0] * tangential[1, 1] - tangential[0, 1] * tangential[1, 0]
    is_regular = determinant > 0
    adjugate = jnp.array([[tangential[1, 1], -tangential[0, 1]], [-tangential[1, 0], tangential[0, 0]]])
    sticking = -adjugate @ coupling / jnp.where(is_regular, determinant, 1)
    force = safe_norm(sticking)
    slips = is_regular & (force > static)
    # slip along d with coupling - mu tangential d = k d, k > 0: the direction to which all slips converge
    unit = lambda x: x / jnp.maximum(safe_norm(x), jnp.finfo(x.dtype).tiny)

    def turn(_, angle):
        d = jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        rate = coupling - kinetic * tangential @ d
        across = jnp.stack([-d[1], d[0]])
        return angle + jnp.arctan2(across @ rate, jnp.maximum(d @ rate, safe_norm(rate) * 0.1))

    start = unit(jnp.where(slips, -sticking, jnp.array([1.0, 0.0], coupling.dtype)))
    angle = jax.lax.stop_gradient(jax.lax.fori_loop(0, 60, turn, jnp.arctan2(start[1], start[0])))
    error = lambda a: (
        lambda d: d[0] * (coupling - kinetic * tangential @ d)[1] - d[1] * (coupling - kinetic * tangential @ d)[0]
    )(jnp.stack([jnp.cos(a), jnp.sin(a)]))
    f, df = jax.jvp(error, (angle,), (jnp.ones_like(angle),))
    angle = angle - jnp.where(df != 0, f / jax.lax.stop_gradient(jnp.where(df != 0, df, 1)), 0)
    outward = -kinetic * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    return jnp.where(slips, outward, sticking)
