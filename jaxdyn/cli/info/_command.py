"""Arguments of `jaxdyn info`."""

import argparse
from pathlib import Path

from jaxdyn.cli.arguments import add_urdf_options


def add_parser(commands: argparse._SubParsersAction):
    """Adds the command `info`."""
    parser = commands.add_parser("info", help="print the tree, masses, coordinates, limits and report of a robot file")
    file = "a URDF (.urdf), an MJCF (.xml, .mjcf) or a saved model"
    parser.add_argument("file", type=Path, metavar="FILE", help=file)
    add_urdf_options(parser)
    parser.add_argument("--allow-absolute", action="store_true", help="follow absolute paths of meshes in a URDF")
    parser.set_defaults(run=print_info)


def print_info(arguments: argparse.Namespace) -> int:
    """Prints the description of a robot file and returns the exit code."""
    import jax

    jax.config.update("jax_enable_x64", True)  # keeps all digits of the numbers in the file
    from jaxdyn.cli.info._describe import describe
    from jaxdyn.cli.robots import read_model
    from jaxdyn.cli.terminal import run_and_report_errors

    def run():
        where = {"package_dirs": arguments.package_dir, "allow_absolute": arguments.allow_absolute}
        print(describe(read_model(arguments.file, arguments.floating_base, **where)))

    return run_and_report_errors("info", run)
