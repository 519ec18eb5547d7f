"""Processes that work as one."""

import inspect
from typing import Any

import jax

from jaxdyn._errors import JaxdynError


def initialize(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    initialization_timeout: int = 60,
    heartbeat_timeout: int = 30,
    **options: Any,
):
    """Joins this process with the others, so that `jax.devices()` are the devices of all of them.

    To be called in every process before any computation. It is `jax.distributed.initialize` with short timeouts: a
    process that is not joined by all others within `initialization_timeout` (s) fails, and when one dies or is silent
    for `heartbeat_timeout` (s) the others stop with an error instead of waiting for it.

    * `coordinator`: `"address:port"` of process 0, with a port that is free there.
    * `num_processes`, `process_id`: how many there are and which this one is, from 0 on.
    * All three may be left out where JAX finds them by itself: under Slurm, Open MPI, Kubernetes, and on cloud TPUs.
    * `options` are further ones of `jax.distributed.initialize`.

    CPU processes talk over TCP by gloo, JAX's default for them (`jax_cpu_collectives_implementation`).
    """
    given = (coordinator, num_processes, process_id)
    if any(x is None for x in given) and any(x is not None for x in given):
        raise JaxdynError(
            f"coordinator {coordinator!r}, num_processes {num_processes} and process_id {process_id} are given; "
            'give all three, such as "10.0.0.1:1234", 4 and 0, or none under a launcher that JAX knows'
        )
    timeouts = {
        "initialization_timeout": initialization_timeout,
        "heartbeat_timeout_seconds": heartbeat_timeout,
        "shutdown_timeout_seconds": heartbeat_timeout,
    }
    known = inspect.signature(jax.distributed.initialize).parameters  # older versions have no timeout of shutdown
    timeouts = {name: seconds for name, seconds in timeouts.items() if name in known}
    jax.distributed.initialize(coordinator, num_processes, process_id, **(timeouts | options))
