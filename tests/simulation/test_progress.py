"""Progress reports of long simulations."""

import diffrax
import jax.numpy as jnp
import pytest

import jaxdyn as jd


@pytest.mark.slow
def test_progress_meter_of_diffrax_reaches_100_percent(capfd):
    model = jd.robots.pendulum()
    meter = diffrax.TextProgressMeter(minimum_increase=0.25)
    run = jd.simulate(model, jnp.array([0.3]), jnp.zeros(1), jnp.array([0.0, 1.0]), dt=0.01, progress_meter=meter)
    assert int(run.num_steps) == 100
    printed = capfd.readouterr().out
    assert "0.00%" in printed
    assert "100.00%" in printed


class Bar:
    """A progress bar with the interface of tqdm."""

    def __init__(self):
        self.n = 0

    def update(self, n):
        self.n += n


@pytest.mark.slow
def test_progress_of_batches():
    model = jd.robots.pendulum()
    reports = []
    starts = jnp.linspace(0, 1, 10)[:, None]
    times = jnp.array([0.0, 0.1])
    jd.simulate_batch(
        model, starts, jnp.zeros((10, 1)), times, dt=0.01, chunk_size=4, progress=lambda *x: reports.append(x)
    )
    assert reports == [(4, 10), (8, 10), (10, 10)]
    bar = Bar()
    jd.simulate_batch(model, starts, jnp.zeros((10, 1)), times, dt=0.01, chunk_size=4, progress=bar)
    assert bar.n == 10
