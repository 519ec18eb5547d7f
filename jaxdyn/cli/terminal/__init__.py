"""Output on the terminal: aligned text, checks, progress, exit codes, and timing of compilation and execution."""

from jaxdyn.cli.terminal._errors import run_and_report_errors as run_and_report_errors
from jaxdyn.cli.terminal._report import Report as Report
from jaxdyn.cli.terminal._timing import compile_and_time as compile_and_time
from jaxdyn.cli.terminal._timing import run_and_time as run_and_time
