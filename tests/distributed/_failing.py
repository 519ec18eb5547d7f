"""Programs with failing partners, run in separate processes; each prints one JSON object."""

import json
import os
import sys
import threading
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import JaxdynError
from jaxdyn.distributed import device_mesh, gather, initialize, run_supervised, shard
from jaxdyn.distributed._rendezvous import meet, parse_address


def initialize_alone(address: str, index: str) -> dict:
    """A process whose partner never comes."""
    start = time.monotonic()
    try:
        initialize(address, 2, int(index), initialization_timeout=3)
    except JaxdynError as error:
        return {"error": str(error), "seconds": time.monotonic() - start}
    return {}


def count_processes(address: str) -> int:
    """The number of processes of a computation by this process alone."""
    initialize(address, 1, 0)
    return jax.process_count()


def sum_forever(address: str, index: int):
    """Sums over both processes until one of them ends."""
    initialize(address, 2, index, initialization_timeout=30, heartbeat_timeout=5)
    total, x = jax.jit(jnp.sum), shard(np.ones(2))
    total(x).block_until_ready()
    print(f"running {os.getpid()}", flush=True)
    while True:
        try:
            total(x).block_until_ready()
        except ValueError:  # of gloo, at once when a connection closes; JAX ends the process somewhat later
            time.sleep(60)
        time.sleep(0.01)


def supervise(address: str, index: str) -> dict:
    """A supervised process whose partner dies."""
    try:
        run_supervised(sum_forever, address, int(index), timeout=80)
    except JaxdynError as error:
        return {"error": str(error)}
    return {}


def connect_launched():
    """The second of two processes that a launcher started; the first one never comes."""
    os.environ |= {"SLURM_JOB_ID": "123", "SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "0"}
    os.environ |= {"SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1"}
    initialize(initialization_timeout=3)


def connect_alone(address: str):
    """A process whose partner comes to the meeting only."""
    initialize(address, 2, 1, initialization_timeout=3)


def supervise_lost(address: str, partner: str) -> dict:
    """A supervised process whose partner is lost where JAX connects, which JAX answers by SIGABRT."""
    call = (connect_launched,) if partner == "launched" else (connect_alone, address)
    if partner == "met":
        at = parse_address(address, "coordinator")
        threading.Thread(target=meet, args=(at, at, 2, 0, 60), daemon=True).start()
    try:
        run_supervised(*call, timeout=60)
    except JaxdynError as error:
        return {"error": str(error)}
    return {}


def supervise_small() -> dict:
    """All outcomes of supervised functions."""
    messages = {}
    for name, seconds, call in (
        ("unpicklable", None, (make_lambda,)),
        ("late", 2, (time.sleep, 60)),
        ("exit", None, (os._exit, 3)),
    ):
        try:
            run_supervised(*call, timeout=seconds)
        except JaxdynError as error:
            messages[name] = str(error)
    try:
        run_supervised(int, "x")
    except ValueError as error:
        messages["raised"] = f"ValueError: {error}"
    return {"value": run_supervised(max, 3, 7), **messages}


def make_lambda():
    """A result that cannot be pickled."""
    return lambda: None


def fork() -> dict:
    """A child that was forked after JAX ran."""
    gather(shard(np.ones(jax.device_count())))
    receiver, sender = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns before the fork
        child = os.fork()
    if child == 0:
        try:
            device_mesh()
        except JaxdynError as error:
            os.write(sender, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(sender)
    return {"error": os.read(receiver, 10_000).decode()}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])), flush=True)
