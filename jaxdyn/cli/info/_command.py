"""Arguments of `jaxdyn info`."""

import argparse

from jaxdyn.cli.arguments import add_robot_argument, add_urdf_options


def add_parser(commands: argparse._SubParsersAction):
    """Adds the command `info`."""
    parser = commands.add_parser("info", help="print the tree, masses, coordinates, limits and report of a robot")
    add_robot_argument(parser)
    add_urdf_options(parser)
    parser.add_argument("--allow-absolute", action="store_true", help="follow absolute paths of meshes in a URDF")
    parser.add_argument("--json", action="store_true", help="print JSON for other programs")
    parser.set_defaults(run=print_info)


def print_info(arguments: argparse.Namespace) -> int:
    """Prints the description of a robot and returns the exit code."""
    import jax

    jax.config.update("jax_enable_x64", True)  # keeps all digits of the numbers in the file
    from jaxdyn.cli.info._describe import describe
    from jaxdyn.cli.info._json import describe_json
    from jaxdyn.cli.robots import read_robot
    from jaxdyn.cli.terminal import run_and_report_errors

    def run():
        model = read_robot(arguments, allow_absolute=arguments.allow_absolute)
        print(describe_json(model) if arguments.json else describe(model))

    return run_and_report_errors("info", run)
