"""Options that a log cannot satisfy are refused before memory is taken or a fit begins."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.identification import GeometricPrior, Log, Preparation, Table, hold_out_share, prepare

T = np.arange(200) * 0.01


def prepare_pendulum(**options):
    robot = jd.robots.pendulum()
    (joint,) = robot.joint_names
    table = Table("run", {"t": T, f"q.{joint}": np.sin(9 * T), f"effort.{joint}": np.cos(9 * T)})
    return prepare([table], robot, preparation=Preparation(cutoff=10.0, **options))


def test_a_rate_far_above_that_of_the_log_raises():
    with pytest.raises(jd.ModelError, match="rate is 1e\\+12 Hz, and run has 100 samples per second"):
        prepare_pendulum(rate=1e12)


def test_a_delay_longer_than_the_logs_raises():
    with pytest.raises(jd.ModelError, match="longest_delay is 1e\\+09 s, and the longest segment of the logs lasts"):
        prepare_pendulum(effort_delay=None, longest_delay=1e9)


def test_more_blocks_than_samples_raise():
    x = np.zeros((200, 1))
    with pytest.raises(jd.ModelError, match="blocks is 1000000000, and log 'log' has 200 samples"):
        hold_out_share([Log(T, x, x, x, x, "log")], 0.2, blocks=1_000_000_000)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_weights_of_the_prior_are_checked(value):
    for name in ("strength", "spread"):
        with pytest.raises(jd.ModelError, match=f"{name} of the prior is .*, expected zero or more"):
            GeometricPrior(**{name: value})


@pytest.mark.parametrize("name", ["rate", "cutoff", "rest_time", "edge", "longest_delay", "shortest"])
def test_options_of_the_preparation_are_finite(name):
    for value in (float("nan"), float("inf"), -1.0):
        with pytest.raises(jd.ModelError, match=f"{name} is .*, expected"):
            Preparation(**{name: value})
