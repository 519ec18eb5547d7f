"""Constraints are reported with their names and times."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.trajopt import (
    Bounds,
    HermiteSimpson,
    MultipleShooting,
    PathConstraint,
    Trapezoidal,
)
from jaxdyn.trajopt._interior_point_program import Program
from jaxdyn.trajopt._interior_point_solve import residuals

from .problems import push


def _clock(t, x, u):
    return t


TRANSCRIPTIONS = (Trapezoidal(), HermiteSimpson(), HermiteSimpson(separated=False), MultipleShooting(linear=True))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [None, 1.0])
@pytest.mark.parametrize("transcription", TRANSCRIPTIONS, ids=("trapezoid", "separated", "compressed", "shooting"))
def test_rows_have_names_and_times(transcription, rate):
    """The violation of `t <= 0` is the time."""
    problem = push(path=(PathConstraint("clock", _clock, upper=0.0),), bounds=Bounds(control_rate=rate))
    program = Program(problem, transcription, jnp.array([0.0, 0.25, 1.0]))
    layout = program.layout
    assert len(transcription.rows(problem, layout)) == transcription.row_limits(problem, layout)[0].shape[0]
    values = program.values(*program.guess())
    found = {r.name: r for r in residuals(program, values)}
    clock = found["path constraints"]
    assert clock.components == ("clock 0",)
    np.testing.assert_allclose(clock.amount[:, 0], clock.times, atol=1e-12)
    assert ("rates of controls" in found) == (rate is not None)
    assert len(transcription.equations(problem, layout)) == values.c.shape[1]
