"""Optimal control of robots: dynamics and optima compared with an independent derivation in CasADi."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import benchmarks._trajopt_robots as robots
from jaxdyn.constraints import Holonomic, impulse
from jaxdyn.trajopt import solve


def _states(problem, count=4):
    rng = np.random.default_rng(0)
    return rng.standard_normal((count, problem.nx)), 10 * rng.standard_normal((count, problem.nu))


def _biped():
    case = robots.biped_case(8)
    return case.problem, case.theirs()


def _arm():
    model = robots.loaded_panda()
    return robots.arm_problem(model, True), robots.arm_of_casadi(model, True)


@pytest.mark.slow
@pytest.mark.parametrize("make", [_biped, _arm])
def test_dynamics_agree_with_independent_derivation(make):
    problem, (field, rows, ends) = make()
    x, u = _states(problem)

    @eqx.filter_jit
    def ours(x, u, x0):
        ends = [] if problem.coupling is None else [problem.end.condition(x), problem.coupling(x0, x)]
        path = [c.rows(0.2, x, u) for c in problem.path]
        return problem.dynamics.rate(0.2, x, u), jnp.concatenate(path), jnp.concatenate([jnp.zeros(0), *ends])

    for k in range(len(x)):
        got = ours(*map(jnp.asarray, (x[k], u[k], x[k - 1])))
        for value, theirs in zip(got, (field(x[k], u[k]), rows(0.2, x[k], u[k]), ends(x[k - 1], x[k])), strict=True):
            np.testing.assert_allclose(value, np.array(theirs).ravel(), rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_reset_map_of_biped_is_an_impact():
    """The velocities after the impact equal those of `impulse`."""
    step = robots.biped_case(8).problem.coupling.__self__

    def foot(x):
        at = x.pose("swing_tibia")
        return (at.rotation @ jnp.array([0.0, 0.0, -0.4]) + at.translation)[jnp.array([0, 2])]

    @eqx.filter_jit
    def both(r, w):
        q, v = (jnp.concatenate([jnp.zeros(2), y]) for y in (r, w))
        return step.struck(r, w), impulse(step.floating, [Holonomic("ground", foot)], q, v).v[2:]

    for r, w in np.random.default_rng(1).standard_normal((3, 2, 5)):
        struck, expected = both(jnp.asarray(r), jnp.asarray(w))
        np.testing.assert_allclose(struck, expected, rtol=1e-9, atol=1e-10)
        assert np.abs(struck - w).max() > 1e-2


@pytest.mark.exhaustive
def test_periodic_step_of_biped_agrees_with_casadi():
    case = robots.biped_case(8)
    found = solve(case.problem, intervals=case.intervals).checked()
    optimum, stats, states, _ = robots.casadi_solver(case)()
    assert stats["success"]
    np.testing.assert_allclose(found.cost, optimum, rtol=1e-7)
    np.testing.assert_allclose(found.x, states, atol=1e-4)
    step = case.problem.coupling.__self__
    rise = jax.vmap(lambda x: jax.jvp(step.foot, (x[:5],), (x[5:],)))
    place, speed = rise(found.x[jnp.array([0, -1])])
    np.testing.assert_allclose(place, [[-0.5, 0.0], [0.5, 0.0]], atol=1e-8)
    assert speed[0, 1] > 0.1 and speed[1, 1] < -0.1  # the foot leaves upwards and arrives from above
    gap = jax.vmap(lambda t, x: step.clearance(t, x, None))(found.t, found.x)
    assert gap.min() > -0.0011 and gap[1:-1].min() < 1e-4  # the clearance constraint is active
