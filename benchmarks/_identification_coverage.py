"""Coverage of confidence intervals, and convergence of physical fits from random initial models.

Rows of the table of `benchmarks.identification`, on synthetic logs of the arm of `benchmarks._identification_speed`.
"""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from benchmarks._identification_speed import LINEAR, generate_log
from jaxdyn.identification import FitStatus, Linear, Log, Physical, fit

#: confidence bound in standard deviations, and its nominal coverage
BOUND, RATE = 1.96, 0.95
NOISE = 0.05


@jax.jit
def _efforts(model: jd.Model, log: Log):
    return jax.vmap(lambda q, v, a: jd.rnea(model, q, v, a) - jd.passive_forces(model, q, v))(log.q, log.v, log.a)


def coverage_row(logs: int) -> tuple[str, ...]:
    """Share of the base parameters within 1.96 standard deviations of the truth, over logs with different noise."""
    begin = time.perf_counter()
    start, first = generate_log(2_000)
    model = eqx.tree_at(lambda m: m.links.mass, start, start.links.mass / 1.2)
    model = eqx.tree_at(lambda m: m.properties.friction_velocity, model, jnp.full(7, 0.05))
    start = eqx.tree_at(lambda m: m.properties.friction_velocity, start, jnp.full(7, 0.05))
    clean = np.asarray(_efforts(model, first))
    exact = Log(first.t, first.q, first.v, first.a, clean, "exact")
    base = fit(model, exact, LINEAR, Linear(reweight=0)).base
    truth = np.array([row.prior for row in base])
    inside = []
    for seed in range(logs):
        noise = np.random.default_rng(seed + 1).normal(0, NOISE, clean.shape)
        found = fit(start, eqx.tree_at(lambda x: x.effort, exact, jnp.asarray(clean + noise)), LINEAR, Linear())
        if [row.name for row in found.base] != [row.name for row in base]:
            raise RuntimeError("the base parameters of a log with noise differ from those of the log without noise")
        error = np.array([row.value for row in found.base]) - truth
        inside += list(np.abs(error) < BOUND * np.array([row.deviation for row in found.base]))
    label = f"base parameters within {BOUND} standard deviations, of {len(inside)}"
    spent = f"{time.perf_counter() - begin:.1f}"
    return f"{logs} logs of 2000 samples", label, "", f"{np.mean(inside):.3f}", "", spent


def convergence_row(fits: int = 24) -> tuple[str, ...]:
    """Number of physical fits, between random robots, that converge to consistent links and to the noise level."""
    begin = time.perf_counter()
    start, log = generate_log(1_000)
    model, good = start, 0
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        truth, guess = (_random_robot(model, rng) for _ in range(2))
        effort = np.asarray(_efforts(truth, log)) + rng.normal(0, NOISE, log.q.shape)
        found = fit(guess, eqx.tree_at(lambda x: x.effort, log, jnp.asarray(effort)), LINEAR, Physical())
        rms = np.array([error.fit for error in found.errors])
        good += found.status == FitStatus.CONVERGED and found.is_physical and bool((rms < 1.1 * NOISE).all())
    spent = f"{time.perf_counter() - begin:.1f}"
    return f"{fits} random arms of 7 joints", "physical fits that converge", "", f"{good} of {fits}", "all", spent


def _random_robot(model: jd.Model, rng: np.random.Generator) -> jd.Model:
    """The arm with random links: masses within a factor of 3, random centres of mass and moments of inertia."""
    count = len(model.link_names)
    factor = np.exp(rng.uniform(-1.1, 1.1, count))
    links = model.links
    turn = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    # positive definite second moments of mass make the inertia physically consistent
    second = turn @ (np.exp(rng.uniform(-2, 1, (count, 3)))[:, :, None] * turn.transpose(0, 2, 1)) * 0.01
    inertia = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    mass = np.asarray(links.mass) * factor
    com = np.asarray(links.com) + rng.normal(0, 0.05, (count, 3))
    properties = lambda m: (m.properties.damping, m.properties.friction, m.properties.armature)
    numbers = tuple(jnp.asarray(rng.uniform(0.05, 0.6, model.nv) * k) for k in (1, 1, 0.2))
    model = eqx.tree_at(properties, model, numbers)
    leaves = lambda m: (m.links.mass, m.links.com, m.links.inertia)
    return eqx.tree_at(leaves, model, tuple(map(jnp.asarray, (mass, com, mass[:, None, None] * inertia))))


def coverage(logs: int) -> list[tuple[str, ...]]:
    """The rows of coverage and convergence."""
    return [coverage_row(logs), convergence_row()]
