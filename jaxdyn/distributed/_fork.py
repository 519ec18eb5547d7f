"""Detection of a fork after JAX ran: its threads do not exist in the child, where computations never end."""

import os

from jaxdyn._errors import JaxdynError

_registered: list[bool] = []
_forked: list[int] = []


def check_not_forked():
    """Raises `JaxdynError` in a child that was forked from a process after it used `jaxdyn.distributed`.

    The first call registers a handler (`os.register_at_fork`), on systems that fork.
    """
    if _forked:
        raise JaxdynError(
            f"this process was forked from process {_forked[-1]} after JAX ran there, and JAX's threads do not survive "
            "a fork; start processes before JAX runs, by subprocess, or by multiprocessing.get_context('spawn')"
        )
    if not _registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _forked.append(os.getppid()))
        _registered.append(True)
