"""Errors of a command as one line and an exit code."""

import sys
from collections.abc import Callable

from jaxdyn._errors import JaxdynError


def run_and_report_errors(command: str, run: Callable[[], object]) -> int:
    """Calls `run()` and returns the exit code of `jaxdyn <command>`.

    The code is 0 on success, 1 after a `JaxdynError`, whose message becomes one line on the standard error, and 130
    after an interrupt.
    """
    try:
        run()
    except JaxdynError as error:
        print(f"jaxdyn {command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"jaxdyn {command}: interrupted; no partly written file is left", file=sys.stderr)
        return 130
    return 0
