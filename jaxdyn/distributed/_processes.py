"""Multi-process initialisation."""

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
    """Connects this process to the others, so that `jax.devices()` lists the devices of all processes.

    Call it in every process before any computation. It is `jax.distributed.initialize` with short timeouts. Arguments:

    * `coordinator`: `"address:port"` of process 0, with a free port.
    * `num_processes`, `process_id`: number of processes, and index of this one, counted from 0.
    * `initialization_timeout`: time, s, after which a process fails if the others have not connected.
    * `heartbeat_timeout`: time, s, after which the other processes stop with an error if one does not respond.
    * `options`: further options of `jax.distributed.initialize`.

    The first three may be omitted where JAX detects them: under Slurm, Open MPI, Kubernetes, and on cloud TPUs. Raises
    `JaxdynError` if only some of the three are given. CPU processes communicate over TCP by gloo, JAX's default
    (`jax_cpu_collectives_implementation`).
    """
    given = (coordinator, num_processes, process_id)
    if any(x is None for x in given) and any(x is not None for x in given):
        raise JaxdynError(
            f"coordinator {coordinator!r}, num_processes {num_processes} and process_id {process_id} are given; "
            'give all three, such as "10.0.0.1:1234", 4 and 0, or none under a launcher that JAX detects'
        )
    timeouts = {
        "initialization_timeout": initialization_timeout,
        "heartbeat_timeout_seconds": heartbeat_timeout,
        "shutdown_timeout_seconds": heartbeat_timeout,
    }
    known = inspect.signature(jax.distributed.initialize).parameters  # older versions have no shutdown timeout
    timeouts = {name: seconds for name, seconds in timeouts.items() if name in known}
    jax.distributed.initialize(coordinator, num_processes, process_id, **(timeouts | options))
