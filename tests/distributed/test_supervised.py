"""A function in a supervised child process."""

import socket

from jaxdyn.distributed import run_supervised

from ._failing import count_processes


def test_child_process_initialises_and_returns():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    assert run_supervised(count_processes, address, timeout=120) == 1
