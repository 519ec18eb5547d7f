"""States of mechanisms with contacts at rest, at touch-down, at separation and without slip, and their evaluation.

A state is a dictionary of arrays: the numbers of the mechanism `p`, the displacement `dq` from the neutral
configuration, the velocities `v` and the efforts `tau`. `Discrete` has the modes before the instant and the guards that
have just become zero there, which `simulate` would pass.
"""

import functools as ft
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from benchmarks._contact_mechanisms import Mechanism
from jaxdyn.contact import ContactModes

#: kinds of states
KINDS = (
    "open",
    "touch-down",
    "touch-down without slip",
    "touch-down without speed",
    "at rest",
    "sliding",
    "without slip",
    "separation",
    "without force",
    "touch-down beside a contact",
)
OPEN, HIT, HIT_STRAIGHT, GRAZE, REST, SLIDE, STOP, LEAVE, UNLOAD, STRIKE = range(len(KINDS))
#: kinds at which several contacts may take part
_SEVERAL = np.array([HIT, HIT_STRAIGHT, GRAZE, REST, SLIDE, STOP, LEAVE, UNLOAD])
#: m, of contacts that take no part in the state
LEAST_GAP = 1e-3
#: m/s, below which a normal velocity is rounding error
STILL = 1e-9


class Discrete(NamedTuple):
    """The modes before the instant, and the guards that have just become zero."""

    modes: ContactModes
    fired: Any


class Evaluation(NamedTuple):
    """Velocity and modes after the switch at a state, and accelerations and contact forces in these modes."""

    #: velocities after the impact, accelerations after it; impulses of the impact, contact forces after it
    value: Any
    #: which of these are unique: impulses and forces of several contacts may not be
    is_unique: Any
    #: which contacts are closed and which groups slide after it, and which contacts approach before it
    pattern: Any
    failure: Any
    culprit: Any
    #: kinetic energies before and after, J
    energy: Any


def sample(mechanism: Mechanism, rng, count: int):
    """Random numbers of a mechanism, displacements, velocities, efforts, speeds of approach and kinds of states."""
    p = {name: rng.uniform(*limits, count) for name, limits in mechanism.ranges.items()}
    n = len(mechanism.low)
    kind = np.arange(count) % len(KINDS)
    several = rng.random(count) < 0.5
    at_once = np.isin(kind, _SEVERAL) & several | (kind == STRIKE)
    for name, value in mechanism.at_once:
        p[name] = np.where(at_once, value, p[name])
    x = {"p": p, "dq": rng.uniform(mechanism.low, mechanism.high, (count, n))}
    x |= {"v": rng.normal(size=(count, n)), "tau": 3 * rng.normal(size=(count, n))}
    return x, kind, at_once, rng.uniform(0.1, 2.0, count)


def draw_states(mechanism: Mechanism, rng, count: int):
    """`count` valid states with their `Discrete` part and kinds, the same number of each kind."""
    accept = jax.jit(jax.vmap(ft.partial(_prepare, mechanism)))
    parts, each = [], count // len(KINDS)
    have = np.zeros(len(KINDS), int)
    for _ in range(60):
        x, kind, at_once, speed = sample(mechanism, rng, 2 * count)
        x, discrete, is_valid = jax.tree.map(np.asarray, accept(x, kind, at_once, speed))
        rank = np.zeros(2 * count, int)
        for k in range(len(KINDS)):
            rank[kind == k] = have[k] + np.cumsum(is_valid[kind == k]) - 1
        keep = is_valid & (rank < each)
        have += np.bincount(kind[keep], minlength=len(KINDS))
        parts.append(jax.tree.map(lambda a, keep=keep: a[keep], (x, discrete, kind)))
        if have.min() == each:
            break
    else:
        raise RuntimeError(f"too few valid states of {mechanism.name}: {dict(zip(KINDS, have, strict=True))}")
    return jax.tree.map(lambda *a: np.concatenate(a), *parts)


def _prepare(mechanism: Mechanism, x, kind, at_once, speed):
    """A state of a kind near a random one, and whether it is valid."""
    model, motion = mechanism.build(x["p"])
    layout, t = motion.layout, jnp.zeros(())
    contacts, groups = layout.num_contacts, layout.num_groups
    q = jd.integrate(model, jd.neutral(model), x["dq"])
    still, zero = motion.initial_modes(model, t, q, x["v"]), jnp.zeros(groups)
    measure = lambda q, v: motion.in_modes(still).contact_state(model, t, q, v, x["tau"], None)
    wanted = jnp.where(kind == OPEN, 0, jnp.where(at_once & (contacts > 1), 2, 1))
    order = jnp.argsort(jnp.argsort(measure(q, x["v"]).gap))
    chosen = (order < wanted).astype(q.dtype)
    sliding = motion.in_modes(ContactModes(chosen, zero + 1, jnp.tile(jnp.eye(3)[0], (groups, 1)), 0 * chosen))
    for _ in range(4):
        q = sliding.project(model, t, q, jnp.zeros_like(x["v"]))[0]
    v = _velocity(layout, measure, q, x["v"], kind, chosen, order, speed)
    at, own = measure(q, v), chosen[layout.contact]
    slip = jnp.where((kind == STOP)[..., None, None], measure(q, x["v"]).slip, at.slip)
    length = jnp.linalg.norm(slip, axis=1, keepdims=True)
    direction = slip / jnp.where(length > 0, length, 1)
    slides = own * ((kind == SLIDE) | (kind == STOP)) * (length[:, 0] > 0)
    is_closed = (kind == REST) | (kind == SLIDE) | (kind == STOP) | (kind == UNLOAD)
    closed = jnp.where(kind == STRIKE, chosen * (order == 0), chosen * is_closed)
    modes = ContactModes(closed, slides, direction * slides[:, None], 0 * chosen)
    opened = jnp.where(kind == STRIKE, chosen * (order == 1), chosen * (kind <= GRAZE))
    opened = jnp.where(kind == UNLOAD, chosen, opened)
    fired = jnp.concatenate([opened, own * (kind == STOP), jnp.zeros(contacts)])
    a = motion.in_modes(modes).acceleration(model, t, q, v, x["tau"], None)
    tau = jnp.where(kind == UNLOAD, jd.rnea(model, q, v, a), x["tau"])
    is_far = jnp.all(jnp.where(chosen > 0, jnp.abs(at.gap) < 1e-12, at.gap > LEAST_GAP))
    dq = jd.difference(model, jd.neutral(model), q)
    is_valid = is_far & (jnp.max(jnp.abs(v)) < 100) & (jnp.max(jnp.abs(dq)) < 10)
    return {"p": x["p"], "dq": dq, "v": v, "tau": tau}, Discrete(modes, fired), is_valid


def _velocity(layout, measure, q, v, kind, chosen, order, speed):
    """The velocity nearest to v with the normal velocities and slips of a kind at the chosen contacts."""
    rates = lambda v: (lambda s: jnp.concatenate([s.normal_velocity, s.slip.ravel()]))(measure(q, v))
    without_slip = (kind == HIT_STRAIGHT) | (kind == STOP) | (kind == UNLOAD)
    sticks = chosen[layout.contact] * (without_slip | ((kind == STRIKE) & (order[layout.contact] == 0)))
    rows = jnp.concatenate([chosen, jnp.repeat(sticks, 3)])
    approaches = (kind == HIT) | (kind == HIT_STRAIGHT) | ((kind == STRIKE) & (order == 1))
    normal = speed * (jnp.where(kind == LEAVE, 1.0, 0.0) - approaches)
    target = rows * jnp.concatenate([normal * jnp.ones_like(chosen), jnp.zeros(3 * layout.num_groups)])
    jacobian = rows[:, None] * jax.jacfwd(rates)(v)
    v = v + jnp.linalg.pinv(jacobian, rtol=1e-9) @ (target - jacobian @ v)
    return jnp.where(kind == REST, 0.0, v)


def _turns(layout, start, end):
    """1 for friction with two directions without slip before an impact and with slip after it.

    Beside the state the slip turns to its direction during the impact: impulses are a cone over the slip before it,
    which has no derivative at its tip.
    """
    two = np.sum(layout.rows < layout.num_rows, axis=1) == 2
    speed = lambda state: jnp.linalg.norm(state.slip, axis=1)
    hits = start.normal_velocity[layout.contact] < -STILL
    return jnp.where(two & hits & (speed(start) < STILL) & (speed(end) > STILL), 1.0, 0.0)


def evaluate(mechanism: Mechanism, x, discrete: Discrete) -> Evaluation:
    """The switch of the motion at a state, with its impact, and accelerations and contact forces after it."""
    model, motion = mechanism.build(x["p"])
    t = jnp.zeros(())
    before = motion.in_modes(discrete.modes)
    q = jd.integrate(model, jd.neutral(model), x["dq"])
    opened = discrete.fired[: motion.layout.num_contacts]
    taking_part = jnp.clip(discrete.modes.closed + opened, 0, 1)
    # contacts that touch have no gap, also beside the state: an instant with another gap is not the one of the event
    touching = ContactModes(taking_part, discrete.modes.sliding, discrete.modes.direction, 0 * opened)
    q = motion.in_modes(touching).project(model, t, q, 0 * x["v"])[0]
    q, v = before.project(model, t, q, x["v"])
    start = before.contact_state(model, t, q, v, x["tau"], None)
    out = before.switch(model, t, q, v, discrete.fired, lambda motion, v: (x["tau"], None))
    after = motion.in_modes(out.modes)
    a = after.acceleration(model, t, q, out.v, x["tau"], None)
    at = after.contact_state(model, t, q, out.v, x["tau"], None)
    moves, forces = jnp.concatenate([out.v, a]), jnp.concatenate([out.impulse, at.normal_force, at.friction.ravel()])
    is_unique = jnp.concatenate([jnp.ones_like(moves) > 0, jnp.broadcast_to(jnp.sum(taking_part) <= 1, forces.shape)])
    # without normal speed, the derivative is that of motions in which closing contacts approach and others separate
    is_still, closes = jnp.abs(start.normal_velocity) < STILL, out.modes.closed > 0
    approaches = taking_part * jnp.where(is_still, closes, start.normal_velocity < 0)
    pattern = jnp.concatenate([out.modes.closed, out.modes.sliding, approaches, _turns(motion.layout, start, at)])
    energy = jnp.stack([jd.kinetic_energy(model, q, u) for u in (v, out.v)])
    return Evaluation(jnp.concatenate([moves, forces]), is_unique, pattern, out.failure, out.culprit, energy)
