"""Reports of solvers: progress, names and times of violated constraints, exceptions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._errors import ConvergenceError
from jaxdyn.trajopt import (
    Bounds,
    HermiteSimpson,
    MultipleShooting,
    PathConstraint,
    Problem,
    Trapezoidal,
    ilqr,
    partial,
    single_shooting,
    solve,
)
from jaxdyn.trajopt.interior_point._program import Program
from jaxdyn.trajopt.interior_point._solve import constraint_residuals
from jaxdyn.trajopt.transcription import end_names, start_names

from .problems import push


def _clock(t, x, u):
    return t


def _position_and_velocity(x):
    return jnp.stack([x[0], x[1]])


def _difference(x0, xT):
    return xT - x0


TRANSCRIPTIONS = (Trapezoidal(), HermiteSimpson(), HermiteSimpson(separated=False), MultipleShooting(linear=True))


@pytest.mark.exhaustive
@pytest.mark.parametrize("rate", [None, 1.0])
@pytest.mark.parametrize("transcription", TRANSCRIPTIONS, ids=("trapezoid", "separated", "compressed", "shooting"))
def test_residuals_have_names_and_times(transcription, rate):
    """The violation of the path constraint `t <= 0` equals the time."""
    problem = push(path=(PathConstraint("clock", _clock, upper=0.0),), bounds=Bounds(control_rate=rate))
    program = Program(problem, transcription, jnp.array([0.0, 0.25, 1.0]))
    layout = program.layout
    assert len(transcription.row_labels(problem, layout)) == transcription.row_limits(problem, layout)[0].shape[0]
    values = program.values(*program.guess())
    found = {r.name: r for r in constraint_residuals(program, values)}
    clock = found["path constraints"]
    assert clock.components == ("clock 0",)
    np.testing.assert_allclose(clock.amount[:, 0], clock.times, atol=1e-12)
    assert ("rates of controls" in found) == (rate is not None)
    assert len(transcription.equation_labels(problem, layout)) == values.c.shape[1]


def test_boundary_residuals_are_named_by_states_and_conditions():
    problem = Problem(push().dynamics, 1.0, start=_position_and_velocity, end=partial([3.0], [1]), end_control=[0.5])
    layout = Trapezoidal().layout(problem)
    assert start_names(problem, layout) == ("condition 0", "condition 1")
    assert end_names(problem) == ("v", "u")
    assert [label.component for label in Trapezoidal().equation_labels(problem, layout)] == ["p", "v"]
    repeats = Problem(push().dynamics, 1.0, coupling=_difference)
    assert end_names(repeats) == ("coupling 0", "coupling 1")
    assert start_names(repeats, Trapezoidal().layout(repeats)) == ("p at the start", "v at the start")


@pytest.mark.slow("ilqr", "single_shooting")
@pytest.mark.parametrize("method", [solve, ilqr, single_shooting])
def test_progress_is_reported_by_every_solver(method):
    log = []
    found = method(push(), intervals=4, progress=log.append)
    assert found.run_seconds > 0 and found.compile_seconds > 0
    assert [int(p.iteration) for p in log] == sorted(int(p.iteration) for p in log)
    assert len(log) > 1
    violation = lambda p: max(float(p.violation), float(getattr(p, "gap", 0)))
    assert violation(log[-1]) <= 1e-4 < violation(log[0])
    assert np.isfinite([float(p.cost) for p in log]).all()


@pytest.mark.slow
def test_progress_is_printed(capsys):
    ilqr(push(), intervals=4, progress=True)
    assert "cost" in capsys.readouterr().out


def _count_calls():
    calls = []

    def effort(t, x, u):
        calls.append(None)
        return u @ u

    return effort, calls


@pytest.mark.exhaustive
def test_gradient_is_compiled_once_and_failures_raise_inside_of_programs():
    effort, calls = _count_calls()
    problem = lambda m: eqx.tree_at(lambda p: p.running, push(m), Problem(push().dynamics, 1.0, running=effort).running)
    slope = jax.grad(lambda m: solve(problem(m), intervals=4, throw=True).cost)
    first = slope(2.0)
    before = len(calls)
    np.testing.assert_allclose(slope(3.0), 1.5 * first, rtol=1e-8)
    assert len(calls) == before
    with pytest.raises(ConvergenceError, match="not optimal"):
        ilqr(push(bounds=Bounds(lower_control=-1.0, upper_control=1.0)), intervals=4, throw=True)
    with pytest.raises(Exception, match="not optimal"):
        jax.jit(lambda m: solve(problem(m), intervals=4, throw=True).cost)(jnp.nan).block_until_ready()
