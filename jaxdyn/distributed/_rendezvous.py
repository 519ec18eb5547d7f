"""A meeting of all processes over TCP before JAX connects them.

JAX ends a process by SIGABRT if the others do not answer in time. Here the same conditions raise exceptions: process 0
listens at the address of the coordinator, the others connect to it and send their number, and process 0 replies as soon
as all of them are there. Then the port is free for JAX.
"""

import contextlib
import re
import socket
import time
from typing import NamedTuple

from jaxdyn._errors import JaxdynError

_RETRY = 0.1  # s between two attempts to connect
_GRACE = 1.0  # s by which the others outlast process 0, whose reply names the missing processes
_LONGEST_LINE = 400
_GO = "go"


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: object, name: str) -> Address:
    """The address in a text such as "10.0.0.1:1234" or "[::1]:1234"; raises `JaxdynError` for any other."""
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:\[\]]+):(\d{1,5})", text) if isinstance(text, str) else None
    if match is None or not 0 < int(match[2]) < 65536:
        raise JaxdynError(
            f'{name} is {text!r}, expected "address:port" with a port from 1 to 65535, such as "10.0.0.1:1234"'
        )
    return Address(match[1].strip("[]"), int(match[2]))


def meet(address: Address, bind: Address, count: int, index: int, timeout: float | int):
    """Returns when all `count` processes have come to `address`; raises `JaxdynError` after `timeout` seconds.

    Process 0 listens at `bind`. The others may come earlier or later than it; once connected, they wait a second longer
    than `timeout` for the reply that names the missing processes.
    """
    deadline = time.monotonic() + timeout
    if index == 0:
        _receive_others(bind, count, timeout, deadline)
    else:
        _report_to_coordinator(address, count, index, timeout, deadline)


def _remaining(deadline: float) -> float:
    return max(deadline - time.monotonic(), 1e-3)


def _receive_others(bind: Address, count: int, timeout: float | int, deadline: float):
    """The part of process 0."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listen(bind))
        present: dict[int, socket.socket] = {}
        problem = None
        while len(present) < count - 1 and problem is None:
            listener.settimeout(_remaining(deadline))
            try:
                connection = stack.enter_context(listener.accept()[0])
            except TimeoutError:
                absent = ", ".join(str(k) for k in range(1, count) if k not in present)
                problem = (
                    f"of {count} processes, number {absent} did not connect to {bind} within {timeout:g} s; check that "
                    "they run, that they were given the address of process 0, and that no firewall blocks the port"
                )
                break
            connection.settimeout(min(5.0, _remaining(deadline)))
            problem = _welcome(connection, count, present)
        ended = [str(k) for k, connection in present.items() if _is_closed(connection)]
        if ended and problem is None:
            problem = f"process {', '.join(ended)} ended before all {count} processes were there; see its output"
        for connection in present.values():
            with contextlib.suppress(OSError):
                connection.settimeout(5.0)
                connection.sendall(f"{problem or _GO}\n".encode())
                connection.recv(1)  # the other side closes first, so that the port is free at once
    if problem is not None:
        raise JaxdynError(problem)


def _welcome(connection: socket.socket, count: int, present: dict[int, socket.socket]) -> str | None:
    """Adds a process to those that are present; returns what is wrong with it. Strangers are ignored."""
    try:
        match = re.fullmatch(r"jaxdyn (\d{1,9}) of (\d{1,9})", _receive_line(connection))
    except OSError:
        return None
    if match is None:
        return None
    index, their_count = int(match[1]), int(match[2])
    if their_count != count or not 0 < index < count or index in present:
        reason = "twice" if index in present and their_count == count else f"of {their_count}"
        present.setdefault(-index if index in present else index, connection)
        return (
            f"process 0 of {count} was joined by process {index} {reason}; give all processes the same num_processes, "
            "and each one a process_id of its own"
        )
    present[index] = connection
    return None


def _is_closed(connection: socket.socket) -> bool:
    """True if the other side has closed the connection, as the system does when its process dies."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _listen(bind: Address) -> socket.socket:
    is_both = bind.host == "::" and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    try:
        return socket.create_server((bind.host, bind.port), family=family, backlog=1024, dualstack_ipv6=is_both)
    except (OSError, UnicodeError) as error:
        raise JaxdynError(
            f"process 0 cannot listen at {bind} ({error}); give a coordinator address of this machine and a free port"
        ) from None


def _report_to_coordinator(address: Address, count: int, index: int, timeout: float | int, deadline: float):
    """The part of the other processes."""
    with _connect(address, timeout, deadline) as connection:
        try:
            connection.settimeout(_remaining(deadline) + _GRACE)
            connection.sendall(f"jaxdyn {index} of {count}\n".encode())
            answer = _receive_line(connection)
        except TimeoutError:
            raise JaxdynError(
                f"process 0 at {address} did not reply to process {index} within {timeout:g} s; check that it calls "
                f"initialize, and that all {count} processes run"
            ) from None
        except OSError:
            answer = ""
    if answer != _GO:
        raise JaxdynError(answer or f"process 0 at {address} ended before all processes were there; see its output")


def _connect(address: Address, timeout: float | int, deadline: float) -> socket.socket:
    reason: object = "no attempt"
    while time.monotonic() < deadline:
        try:
            return socket.create_connection(address, timeout=min(5.0, _remaining(deadline)))
        except (socket.gaierror, UnicodeError) as error:
            raise JaxdynError(
                f"the host of the coordinator address {address} is unknown ({error}); check the name"
            ) from None
        except OSError as error:
            reason = error
            time.sleep(min(_RETRY, _remaining(deadline)))
    raise JaxdynError(
        f"no connection to process 0 at {address} within {timeout:g} s ({reason}); check the address, that process 0 "
        "runs, and that no firewall blocks the port"
    )


def _receive_line(connection: socket.socket) -> str:
    """One line of at most `_LONGEST_LINE` bytes, or "" if the other side sends none in time and closes."""
    received = b""
    while b"\n" not in received and len(received) < _LONGEST_LINE:
        part = connection.recv(_LONGEST_LINE)
        if not part:
            return ""
        received += part
    return received.partition(b"\n")[0].decode("ascii", "replace")
