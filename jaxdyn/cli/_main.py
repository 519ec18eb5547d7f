"""The `jaxdyn` command, put together from its subcommands."""

import argparse
from collections.abc import Sequence
from importlib.metadata import version

from jaxdyn.cli.fit import add_parser as add_fit_parser
from jaxdyn.cli.info import add_parser as add_info_parser
from jaxdyn.cli.simulate import add_parser as add_simulate_parser
from jaxdyn.cli.tour import add_parser as add_tour_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the `jaxdyn` command.

    Arguments:

    * `argv`: the words behind `jaxdyn`, such as `["info", "arm.urdf"]`; by default those of the process.

    Without words it prints a help with examples. Returns the exit code: 0 if the command succeeded, 1 if it failed
    with a message on the standard error, 130 if it was interrupted. Unknown options raise `SystemExit` with code 2,
    `--help` and `--version` with code 0.

    ```python
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import jaxdyn as jd
    from jaxdyn.cli import main

    with TemporaryDirectory() as folder:
        path = Path(folder) / "pendulum.urdf"
        jd.write_urdf(jd.robots.pendulum(), path)
        assert main(["info", str(path)]) == 0  # prints the tree, masses and limits
    ```
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    return arguments.run(arguments)


_EPILOG = """\
examples:
  jaxdyn tour                                         see what jaxdyn does
  jaxdyn info panda                                   describe a bundled robot or a file
  jaxdyn simulate panda --time 2 --html fall.html     simulate it and look at the motion
  jaxdyn fit arm.urdf log.csv --config fit.toml       identify its parameters from a log

exit codes: 0 success, 1 failure with a message, 2 wrong arguments, 130 interrupted
"""


def _parser() -> argparse.ArgumentParser:
    description = "Differentiable multibody dynamics in JAX."
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("jaxdyn", description=description, epilog=_EPILOG, formatter_class=as_written)
    parser.add_argument("--version", action="version", version=f"jaxdyn {version('jaxdyn')}")
    commands = parser.add_subparsers(title="commands", dest="command")
    for add_parser in (add_tour_parser, add_info_parser, add_simulate_parser, add_fit_parser):
        add_parser(commands)
    return parser
