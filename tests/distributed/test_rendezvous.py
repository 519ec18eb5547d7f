"""A wrong address, a wrong number, and a missing or dead partner are exceptions that say what to check."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import jaxdyn as jd
from jaxdyn.distributed import _processes, initialize
from jaxdyn.distributed._rendezvous import Address, meet, parse_address

from .._architecture import ROOT


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def meet_in_threads(*processes: tuple[int, int], timeout: float = 10.0, strangers: tuple[bytes, ...] = ()) -> list[str]:
    """The outcome of each process `(index, count)`: "" or the message of its exception."""
    address, outcomes = Address("127.0.0.1", free_port()), [""] * len(processes)

    def run(k, index, count):
        try:
            meet(address, address, count, index, timeout)
        except jd.JaxdynError as error:
            outcomes[k] = str(error)

    threads = [threading.Thread(target=run, args=(k, *process)) for k, process in enumerate(processes)]
    threads[0].start()
    for greeting in strangers:
        time.sleep(0.2)
        with socket.create_connection(address) as stranger:
            stranger.sendall(greeting)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_all_processes_meet():
    assert meet_in_threads((0, 1)) == [""]
    assert meet_in_threads((0, 4), (3, 4), (1, 4), (2, 4)) == [""] * 4
    assert meet_in_threads((2, 3), (1, 3), (0, 3)) == [""] * 3, "process 0 comes last"


def test_strangers_are_ignored():
    strangers = (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 500, b"jaxdyn 1 of x\n")
    assert meet_in_threads((0, 2), (1, 2), strangers=strangers) == ["", ""]


def test_the_port_is_free_afterwards():
    address = Address("127.0.0.1", free_port())
    for _ in range(2):
        threads = [threading.Thread(target=meet, args=(address, address, 2, k, 10.0)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        socket.create_server(address).close()


@pytest.mark.parametrize(
    ("processes", "message"),
    [
        (((0, 3), (1, 3)), r"of 3 processes, number 2 did not connect .* within 1 s"),
        (((1, 3), (0, 3)), r"of 3 processes, number 2 did not connect .* within 1 s"),
        (((0, 2),), r"of 2 processes, number 1 did not connect"),
        (((1, 2),), r"no connection to process 0 at 127.0.0.1:\d+ within 1 s"),
        (((0, 2), (1, 3)), r"process 0 of 2 was joined by process 1 of 3; give all processes the same num_processes"),
        (((0, 3), (1, 3), (1, 3)), r"process 0 of 3 was joined by process 1 twice"),
    ],
)
def test_processes_that_do_not_meet_raise(processes, message):
    start = time.monotonic()
    outcomes = meet_in_threads(*processes, timeout=1.0)
    assert all(re.search(message, outcome) for outcome in outcomes), outcomes
    assert time.monotonic() - start < 4


def test_a_process_that_ends_while_it_waits_is_noticed():
    address, messages = Address("127.0.0.1", free_port()), []

    def run(index):
        try:
            meet(address, address, 3, index, 10.0)
        except jd.JaxdynError as error:
            messages.append(str(error))

    threads = [threading.Thread(target=run, args=(k,)) for k in (0, 2)]
    threads[0].start()
    time.sleep(0.2)
    with socket.create_connection(address) as dying:
        dying.sendall(b"jaxdyn 1 of 3\n")
        time.sleep(0.2)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert len(messages) == 2 and all("process 1 ended before all 3 processes" in x for x in messages), messages


def test_a_port_in_use_raises():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address(*taken.getsockname())
        with pytest.raises(jd.JaxdynError, match="process 0 cannot listen at 127.0.0.1:.* in use.*free port"):
            meet(address, address, 2, 0, 1.0)


def test_an_unknown_host_raises():
    address = Address("no-such-host.invalid", 1234)
    with pytest.raises(jd.JaxdynError, match="the host of the coordinator address no-such-host.invalid:1234 is"):
        meet(address, address, 2, 1, 5.0)


@pytest.mark.parametrize(
    "text", ["nonsense", "", "127.0.0.1", "127.0.0.1:", ":80", "a:0", "a:65536", "a:-1", "a:b", "::1:80", "a b:80", 80]
)
def test_invalid_addresses_raise(text):
    with pytest.raises(jd.JaxdynError, match='expected "address:port"'):
        _processes._meet_others(text, 2, 0, {}, 1)


def test_initialize_checks_its_arguments():
    with pytest.raises(jd.JaxdynError, match='coordinator is .nonsense., expected "address:port"'):
        initialize("nonsense", 2, 0)
    with pytest.raises(jd.JaxdynError, match="process_id is 2, expected a whole number from 0 to 1"):
        initialize("127.0.0.1:1", 2, 2)


def test_addresses():
    assert parse_address("10.0.0.1:1234", "x") == ("10.0.0.1", 1234)
    assert parse_address("[::1]:80", "x") == ("::1", 80) and str(Address("::1", 80)) == "[::1]:80"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0), "num_processes is 0, expected a whole number of at least 1"),
        ((-1, 0), "num_processes is -1"),
        ((2.0, 0), "num_processes is 2.0"),
        ((2, 2), "process_id is 2, expected a whole number from 0 to 1"),
        ((2, -1), "process_id is -1"),
        ((2, "0"), "process_id is '0'"),
    ],
)
def test_invalid_numbers_raise(arguments, message):
    with pytest.raises(jd.JaxdynError, match=message):
        _processes._meet_others("127.0.0.1:1", *arguments, {}, 1)


@pytest.mark.parametrize("seconds", [0, -1])
def test_invalid_timeouts_raise(seconds):
    with pytest.raises(jd.JaxdynError, match="expected a positive number of seconds"):
        initialize("127.0.0.1:1", 2, 1, initialization_timeout=seconds)


def start(program: str, *arguments: str) -> subprocess.Popen:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.distributed._failing", program, *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize(("index", "message"), [(0, "number 1 did not connect"), (1, "no connection to process 0")])
def test_a_missing_partner_can_be_caught(index, message):
    alone = start("initialize_alone", f"127.0.0.1:{free_port()}", str(index))
    out, err = alone.communicate(timeout=60)
    result = json.loads(out.splitlines()[-1])
    assert alone.returncode == 0 and message in result["error"] and result["seconds"] < 8, err


@pytest.mark.slow("0-9")
@pytest.mark.parametrize(("victim", "how"), [(1, signal.SIGKILL), (0, signal.SIGKILL), (1, signal.SIGSTOP)])
def test_a_killed_partner_is_an_exception_of_a_supervised_function(victim, how):
    address = f"127.0.0.1:{free_port()}"
    workers = [start("supervise", address, str(k)) for k in range(2)]
    pids = {}
    try:
        for k, worker in enumerate(workers):
            pids[k] = next(int(line.split()[1]) for line in worker.stdout if line.startswith("running"))
        os.kill(pids[victim], how)
        out, err = workers[1 - victim].communicate(timeout=90)
        assert workers[1 - victim].returncode == 0, err
        assert "another process of the computation has died" in json.loads(out.splitlines()[-1])["error"]
    finally:
        for k, worker in enumerate(workers):
            if worker.poll() is None:
                with contextlib.suppress(KeyError, ProcessLookupError):  # it has not begun, or has ended
                    os.kill(pids[k], signal.SIGKILL)
                worker.kill()
            worker.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("partner", ["launched", "met"])
def test_a_partner_lost_while_jax_connects_is_an_exception_of_a_supervised_function(partner):
    worker = start("supervise_lost", f"127.0.0.1:{free_port()}", partner)
    out, err = worker.communicate(timeout=90)
    assert worker.returncode == 0, err
    assert (
        "ended by the signal SIGABRT; another process of the computation" in json.loads(out.splitlines()[-1])["error"]
    )


@pytest.mark.slow
def test_a_forked_child_raises_instead_of_hanging():
    child = start("fork")
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert "was forked from process" in json.loads(out.splitlines()[-1])["error"]


@pytest.mark.slow
def test_results_and_exceptions_of_supervised_functions():
    child = start("supervise_small")
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    result = json.loads(out.splitlines()[-1])
    assert result["value"] == 7 and result["raised"] == "ValueError: invalid literal for int() with base 10: 'x'"
    assert "not picklable" in result["unpicklable"] and "did not end within 2 s" in result["late"]
    assert "ended by exit code 3" in result["exit"]
