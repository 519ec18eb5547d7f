"""Time-optimal timing of paths: closed forms, an integral by scipy, linear programs by scipy, and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import jaxdyn as jd
from jaxdyn import trajopt as to
from jaxdyn._errors import ConvergenceError
from jaxdyn.trajopt import TimingStatus

SLIDER = jd.ModelBuilder().add_link("mass", "world", jd.joints.Prismatic((1, 0, 0)), jd.spatial.point_mass(2.0)).build()
ARM = jd.robots.double_pendulum()
S = jnp.linspace(0.0, 1.0, 201)


class Line:
    """`q(s) = distance s`."""

    def __init__(self, distance):
        self.distance = distance

    def __call__(self, s):
        return jnp.full(1, self.distance) * s


three = Line(3.0)
half_turn = Line(float(np.pi))


def sweep(s):
    return jnp.stack([1.5 * s, jnp.sin(3 * s)])


@jax.jit
def time_slider(force, speed, start_rate=0.0):
    return to.time_path(SLIDER, three, S, effort=force, velocity=speed, start_rate=start_rate)


@pytest.mark.slow
def test_mass_on_a_line_is_bang_bang():
    free = time_slider(5.0, jnp.inf, 0.0)
    assert free.status == TimingStatus.FOUND
    assert free.duration == pytest.approx(2 * np.sqrt(3 * 2 / 5), abs=1e-9)  # 2 sqrt(d m / F)
    np.testing.assert_allclose(np.abs(free.effort), 5.0, atol=1e-9)
    capped = time_slider(5.0, 1.0, 0.0)
    assert capped.duration == pytest.approx(3 / 1 + 1 * 2 / 5, abs=2e-3)  # d / v + v m / F; corners fall between points
    q, v, _ = jax.vmap(capped)(capped.times)
    np.testing.assert_allclose(q[:, 0], 3 * S, atol=1e-12)
    assert v.max() <= 1 + 1e-12


@pytest.mark.exhaustive
def test_a_fine_grid_finds_the_corners():
    fine = to.time_path(SLIDER, three, jnp.linspace(0.0, 1.0, 3001), effort=5.0, velocity=1.0)
    assert fine.duration == pytest.approx(3.4, abs=1e-5)


@pytest.mark.slow
def test_derivative_of_the_minimum_time():
    slope = jax.grad(lambda f: time_slider(f, jnp.inf).duration)(5.0)
    assert slope == pytest.approx(-np.sqrt(6 / 5**3), abs=1e-9)


@pytest.mark.exhaustive
def test_a_pendulum_lifted_by_a_strong_motor():
    tau = 15.0
    pendulum = jd.robots.pendulum()
    # gravity's work is m g l (1 - cos q): the speed after accelerating, and before decelerating, by energy
    gained = lambda q: 2 * (tau * q - 9.81 * (1 - np.cos(q)))
    left = lambda q: 2 * (tau * (np.pi - q) + 9.81 * (1 + np.cos(q)))
    speed = lambda q: np.sqrt(min(gained(q), left(q)))
    switch = scipy.optimize.brentq(lambda q: gained(q) - left(q), 0.1, 3)
    least = sum(
        scipy.integrate.quad(lambda r, a=a, b=b: 2 * r / speed(b + np.sign(a - b) * r**2), 0, np.sqrt(abs(a - b)))[0]
        for a, b in ((switch, 0.0), (switch, np.pi))
    )
    ours = [to.time_path(pendulum, half_turn, jnp.linspace(0, 1, n), effort=tau) for n in (101, 401)]
    errors = [abs(o.duration - least) for o in ours]
    assert errors[1] < 2e-3
    assert errors[1] < errors[0] / 2
    weak = to.time_path(
        pendulum, half_turn, S, effort=7.0
    )  # its work is short of that of the weight: it needs a run-up
    assert weak.status == TimingStatus.START_INFEASIBLE
    assert weak.duration == jnp.inf
    slow = to.time_path(pendulum, half_turn, S, effort=9.0, velocity=0.5)  # too weak to stand where the rod is level
    assert slow.status == TimingStatus.PATH_INFEASIBLE
    assert 0.3 < slow.worst < 0.7
    with pytest.raises(ConvergenceError, match="PATH_INFEASIBLE at s = 0"):
        slow.checked()


@pytest.mark.slow
def test_controllable_sets_agree_with_linear_programs():
    timed = jax.jit(lambda: to.time_path(ARM, sweep, S, effort=(jnp.array([-60.0, -30.0]), jnp.array([70.0, 32.0]))))()
    assert timed.status == TimingStatus.FOUND
    lower, upper = np.array([-60.0, -30.0]), np.array([70.0, 32.0])
    step = 1 / 200

    def rows(s):
        one = (jnp.ones(()),)
        (q, slope), (_, bend) = jax.jvp(lambda s: jax.jvp(sweep, (s,), one), (s,), one)
        weight = jd.gravity_forces(ARM, q)
        a = jd.mass_matrix(ARM, q) @ slope
        b = jd.mass_matrix(ARM, q) @ bend + jd.coriolis_matrix(ARM, q, slope) @ slope
        return a, b, weight

    rows = jax.jit(rows)
    for k in (40, 100, 150, 190):
        (a0, b0, c0), (a1, b1, c1) = (map(np.asarray, rows(s)) for s in (S[k], S[k + 1]))
        matrix = np.concatenate([np.stack([a0, b0], 1), np.stack([a1 + 2 * step * b1, b1], 1), [[2 * step, 1]]])
        high = np.r_[upper - c0, upper - c1, timed.limit[k + 1]]
        low = np.r_[lower - c0, lower - c1, 0]
        program = scipy.optimize.linprog(
            [0, -1], np.r_[matrix, -matrix], np.r_[high, -low], bounds=[(None, None), (0, None)], method="highs"
        )
        assert timed.limit[k] == pytest.approx(program.x[1], rel=1e-7)
    assert (timed.x <= timed.limit * (1 + 1e-12)).all()
    assert (timed.effort <= upper + 1e-6).all()
    assert (timed.effort >= lower - 1e-6).all()
    used = np.maximum(timed.effort / upper, timed.effort / lower).max(1)
    assert np.median(used) > 1 - 1e-6  # one of the motors is always at its limit


def test_infeasible_paths_have_a_status():
    fast = time_slider(5.0, jnp.inf, 100.0)
    assert fast.status == TimingStatus.START_INFEASIBLE
    bad = time_slider(jnp.nan, jnp.inf, 0.0)
    assert bad.status != TimingStatus.FOUND
    assert not np.isnan(bad.times).any()
