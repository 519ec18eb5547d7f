"""Progress of long work reaches whoever asked for it."""

import diffrax
import jax.numpy as jnp
import pytest

import jaxdyn as jd


@pytest.mark.slow
def test_the_meter_of_diffrax_counts_to_the_end(capfd):
    model = jd.robots.pendulum()
    meter = diffrax.TextProgressMeter(minimum_increase=0.25)
    run = jd.simulate(model, jnp.array([0.3]), jnp.zeros(1), jnp.array([0.0, 1.0]), dt=0.01, progress_meter=meter)
    assert int(run.num_steps) == 100
    printed = capfd.readouterr().out
    assert "0.00%" in printed
    assert "100.00%" in printed


class Bar:
    """Like a bar of tqdm."""

    def __init__(self):
        self.n = 0

    def update(self, n):
        self.n += n


@pytest.mark.slow
def test_a_batch_says_how_many_are_done():
    model = jd.robots.pendulum()
    seen = []
    starts = jnp.linspace(0, 1, 10)[:, None]
    times = jnp.array([0.0, 0.1])
    jd.simulate_batch(
        model, starts, jnp.zeros((10, 1)), times, dt=0.01, chunk_size=4, progress=lambda *x: seen.append(x)
    )
    assert seen == [(4, 10), (8, 10), (10, 10)]
    bar = Bar()
    jd.simulate_batch(model, starts, jnp.zeros((10, 1)), times, dt=0.01, chunk_size=4, progress=bar)
    assert bar.n == 10
