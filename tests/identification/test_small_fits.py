"""A fit of one joint by its efforts and by its motion, cross-validated; excitation and export of the robot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import identification as ji

DAMPING = 0.3
ROBOT = jd.robots.pendulum(damping=0.1)  # 1 kg at 1 m


def _log():
    t = np.linspace(0, 4, 401)
    q, v, a = (x[:, None] for x in (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    return ji.Log(t, q, v, a, effort=a + 9.81 * np.sin(q) + DAMPING * v)


def test_cross_validated_fit():
    """The candidate with viscous friction predicts the held-out folds exactly and has the true coefficient."""
    candidates = {"damping": ji.Candidate(ROBOT, ["joints[*].damping"], ji.Linear(reweight=0))}
    found = ji.cross_validate(candidates, ji.fold_blocks([_log()], 2, guard=0.0))
    assert found.name == "damping" and found.scores[0] < 1e-9
    result = found.best.fit([_log()])
    assert abs(result.value(f"joints[{ROBOT.joint_names[0]}].damping") - DAMPING) < 1e-9
    assert ji.simulation_error(result.system, [_log()], ji.Windows(length=0.4, lead=0.0))[0] < 1e-3


def test_information_of_an_excitation():
    motion = ji.random_fourier(jax.random.key(0), jnp.zeros(1), jnp.ones(1), 6.0)
    q, v, a = jax.jit(jax.vmap(motion.at))(jnp.linspace(0.0, 6.0, 25))
    np.testing.assert_allclose(np.stack([v[0], a[0], v[-1], a[-1]]), 0, atol=1e-12)
    limits = [x * jnp.ones(1) for x in (-2.0, 2.0, 3.0)]
    information = ji.information_of(ROBOT, jnp.ones(1), jax.random.key(0), *limits)
    gram, rows = jax.jit(lambda *x: (information.gram(*x), jax.vmap(information.rows)(*x)))(q, v, a)
    singular = np.linalg.svd(np.concatenate(rows) @ information.basis, compute_uv=False)
    assert float(ji.log_condition(gram)) == pytest.approx(np.log(singular[0] / singular[-1]), rel=1e-6)
    assert float(ji.log_volume(gram)) == pytest.approx(-np.mean(np.log(singular**2 / 25)), rel=1e-6)


def test_designed_excitation_satisfies_its_limits():
    limits = ji.MotionLimits(*(jnp.full(1, x) for x in (-1.0, 1.0, 3.0, 20.0, 50.0)))
    found = ji.design_excitation(ROBOT, duration=4.0, bounds=limits, samples=15, starts=1, rounds=1, steps=2)
    q, v, _ = jax.vmap(found.motion.at)(jnp.linspace(0.0, 4.0, 40))
    assert found.status == ji.ExcitationStatus.FOUND
    assert np.abs(q).max() <= 1.0 and np.abs(v).max() <= 3.0


def test_exported_robot_equals_the_robot():
    check = ji.write_checked_urdf(ROBOT)
    assert max(check.differences.values()) < 1e-9 and "damping" in check.text
