"""Multi-process initialisation."""

import inspect
import socket
from typing import Any

import jax

from jaxdyn._errors import JaxdynError
from jaxdyn.distributed._fork import check_not_forked
from jaxdyn.distributed._rendezvous import Address, meet, parse_address


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

    The first three may be omitted where JAX detects them: under Slurm, Open MPI, Kubernetes, and on cloud TPUs. CPU
    processes communicate over TCP by gloo, JAX's default (`jax_cpu_collectives_implementation`).

    If the three are given, the processes meet over TCP before JAX connects them, and all of them must call this
    function. Raises `JaxdynError` if only some of the three are given, for an invalid address or number, if process 0
    cannot listen, if the others do not come in time, and if the processes disagree on their number. JAX ends this
    process by SIGABRT, which cannot be caught, if a partner is lost after the meeting, and under a launcher, where
    there is no meeting, if one never comes: call this function inside of `run_supervised` to make that an exception.
    """
    check_not_forked()
    given = (coordinator, num_processes, process_id)
    if any(x is None for x in given) and any(x is not None for x in given):
        raise JaxdynError(
            f"coordinator {coordinator!r}, num_processes {num_processes} and process_id {process_id} are given; "
            'give all three, such as "10.0.0.1:1234", 4 and 0, or none under a launcher that JAX detects'
        )
    for name, seconds in (("initialization_timeout", initialization_timeout), ("heartbeat_timeout", heartbeat_timeout)):
        if not 0 < seconds < float("inf"):
            raise JaxdynError(f"{name} is {seconds!r}, expected a positive number of seconds")
    if coordinator is not None:
        _meet_others(coordinator, num_processes, process_id, options, initialization_timeout)
    timeouts = {
        "initialization_timeout": initialization_timeout,
        "heartbeat_timeout_seconds": heartbeat_timeout,
        "shutdown_timeout_seconds": heartbeat_timeout,
    }
    known = inspect.signature(jax.distributed.initialize).parameters  # older versions have no shutdown timeout
    timeouts = {name: seconds for name, seconds in timeouts.items() if name in known}
    try:
        jax.distributed.initialize(coordinator, num_processes, process_id, **(timeouts | options))
    except (RuntimeError, ValueError, TypeError) as error:
        raise JaxdynError(f"JAX cannot connect the processes: {error}") from error


def _meet_others(coordinator: Any, count: Any, index: Any, options: dict[str, Any], timeout: float | int):
    """Raises `JaxdynError` unless all processes are there."""
    address = parse_address(coordinator, "coordinator")
    bind = Address("::" if socket.has_dualstack_ipv6() else "0.0.0.0", address.port)
    if "coordinator_bind_address" in options:
        bind = parse_address(options["coordinator_bind_address"], "coordinator_bind_address")
    if not _is_whole(count) or count < 1:
        raise JaxdynError(f"num_processes is {count!r}, expected a whole number of at least 1")
    if not _is_whole(index) or not 0 <= index < count:
        raise JaxdynError(f"process_id is {index!r}, expected a whole number from 0 to {count - 1}")
    if jax.distributed.is_initialized():
        raise JaxdynError("this process is connected already; call initialize once, before any computation")
    meet(address, bind, count, index, timeout)


def _is_whole(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)
