"""Functions in a supervised child process: the death of the child becomes an exception."""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from jaxdyn._errors import JaxdynError


def run_supervised(function: Callable[..., Any], *args: Any, timeout: float | int | None = None) -> Any:
    """Returns `function(*args)`, computed in a child process; its death is an exception here.

    When a process of a distributed computation dies, JAX ends the others by SIGABRT within `heartbeat_timeout`, which
    no `try` catches. Call `initialize` and compute inside `function` to survive that, for instance to start again with
    the remaining processes. Arguments:

    * `function`: a function at the top level of a module, which the child imports. Guard the script by
      `if __name__ == "__main__"`.
    * `args`: its arguments. They and the result are pickled; return numpy arrays (`gather`).
    * `timeout`: time, s, after which the child is killed; None waits without end.

    Raises what `function` raises, and `JaxdynError` if the child dies or does not end in time.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_serve, args=(sender, function, args))
    child.start()
    sender.close()
    try:
        if not wait([receiver, child.sentinel], timeout):
            raise JaxdynError(
                f"{_name(function)} did not end within {timeout:g} s in its child process, which was killed; check "
                "that all processes run, or give more time"
            )
        return _receive(receiver, child, function)
    finally:
        child.kill()
        child.join()
        receiver.close()


def _serve(sender: Connection, function: Callable[..., Any], args: tuple[Any, ...]):
    """The child process."""
    try:
        outcome = True, function(*args)
    except Exception as error:
        outcome = False, error
    try:
        sender.send(outcome)
    except Exception as error:  # a result or an exception that cannot be pickled
        sender.send((False, JaxdynError(f"{_name(function)} returned {outcome[1]!r:.200}, not picklable ({error})")))


def _receive(receiver: Connection, child: Any, function: Callable[..., Any]) -> Any:
    try:
        is_done, value = receiver.recv()
    except EOFError:
        child.join()
        raise JaxdynError(
            f"the child process of {_name(function)} ended by {_describe_exit(child.exitcode)}; another process of the "
            "computation has died or was suspended, or this one failed: see its output above and theirs"
        ) from None
    if not is_done:
        raise value
    return value


def _describe_exit(code: int) -> str:
    return f"the signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
