"""Outcomes print as names and sentences, and remain integers."""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn._status import Status, describe_status
from jaxdyn.simulation import SimulationStatus, System, Trajectory


def statuses():
    return {x for x in Status.__subclasses__() if x.__module__.startswith("jaxdyn.")}


def test_every_outcome_has_a_sentence():
    assert {SimulationStatus, jd.IKStatus} <= statuses()
    for kind in statuses():
        for member in kind:
            assert member.sentence and str(member) == f"{member.name}: {member.sentence}"
            assert kind(int(member)) is member


def test_outcomes_of_one_result_and_of_a_batch():
    assert describe_status(jd.IKStatus, jnp.asarray(0)) == "CONVERGED: the error is below the tolerance"
    assert describe_status(jd.IKStatus, jnp.asarray([0, 2, 0])) == "2 CONVERGED, 1 MAX_ITERATIONS"
    seen = []
    jax.jit(lambda x: seen.append(describe_status(jd.IKStatus, x)))(jnp.zeros(3, int))
    assert seen == ["traced, of shape (3,)"]


@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_trajectory_prints_in_a_few_lines(batch):
    model, zero = jd.robots.pendulum(), jnp.zeros(batch, int)
    t = jnp.broadcast_to(jnp.linspace(0.0, 2.0, 5), (*batch, 5))
    q = jnp.zeros((*batch, 5, 1))
    text = repr(Trajectory(t, q, q, None, jnp.ones_like(t, bool), zero, zero + 7, System(model)))
    assert "pendulum" in text and "FINISHED" in text and "5 times from 0 to 2 s" in text and len(text) < 300
    traced = []
    path = Trajectory(t, q, q, None, jnp.ones_like(t, bool), zero, zero, System(model))
    jax.jit(lambda x: traced.append(repr(x)))(path)
    assert traced[0].startswith("Trajectory(")
