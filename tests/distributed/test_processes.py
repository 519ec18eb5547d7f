"""Two processes connected over loopback give the results of one; when one dies, the other stops."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from .._architecture import ROOT
from . import _worker

HEARTBEAT = 5  # s


def start_workers(program: str, samples: int) -> list[subprocess.Popen]:
    """Two workers of two devices each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = f"{_worker.QUICK_COMPILE} --xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.distributed._worker", program, str(samples), address, "2"]
    return [
        subprocess.Popen(
            [*command, str(k), str(HEARTBEAT)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in range(2)
    ]


def stop_workers(workers: list[subprocess.Popen]):
    for worker in workers:
        worker.kill()
        worker.communicate()


@pytest.mark.slow
def test_two_processes_give_the_results_of_one():
    workers = start_workers("processes", 8)
    try:
        ends = [worker.communicate(timeout=500) for worker in workers]
    finally:
        stop_workers(workers)
    assert [w.returncode for w in workers] == [0, 0], [err for _, err in ends]
    first, second = (json.loads(out.splitlines()[-1]) for out, _ in ends)
    assert first == second
    assert first["devices"] == [2, 4] and first["local rows"] == 4
    model, q, v = _worker.problem(8)
    one = jax.vmap(_worker.final_configuration, (None, 0, 0))
    by_model, by_q = jax.jit(_worker.gradient_function(one))(model, q, v)
    np.testing.assert_allclose(first["q"], one(model, q, v), atol=1e-14)
    np.testing.assert_allclose(first["mass"], by_model.links.mass, atol=1e-14)
    np.testing.assert_allclose(first["by q"], by_q, atol=1e-14)


@pytest.mark.slow("1-9")
@pytest.mark.parametrize(("victim", "how"), [(1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)])
def test_the_other_process_stops_when_one_dies(victim, how):
    workers = start_workers("forever", 8)
    try:
        for worker in workers:
            assert any(line.strip() == "running" for line in worker.stdout), worker.stderr.read()
        time.sleep(0.5)
        assert all(worker.poll() is None for worker in workers)
        workers[victim].send_signal(how)
        began = time.monotonic()
        other = workers[1 - victim]
        _, text = other.communicate(timeout=120)
        assert time.monotonic() - began < 2 * HEARTBEAT + 30  # and not the minutes of JAX's own timeouts
        assert other.returncode != 0
        assert any(word in text.lower() for word in ("heartbeat", "gloo", "coordinat", "connection")), text
    finally:
        stop_workers(workers)
