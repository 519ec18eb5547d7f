"""Arguments of `jaxdyn tour`."""

import argparse
from pathlib import Path


def add_parser(commands: argparse._SubParsersAction):
    """Adds the command `tour`."""
    parser = commands.add_parser("tour", help="demonstrate the library on a seven-joint arm and check the results")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("jaxdyn-tour"),
        metavar="DIR",
        help="folder for the plots (default: %(default)s)",
    )
    parser.set_defaults(run=run_tour)


def run_tour(arguments: argparse.Namespace) -> int:
    """Runs the tour in double precision; returns 0 if every check passed, otherwise 1."""
    import jax

    jax.config.update("jax_enable_x64", True)  # the command owns this process and may choose its precision
    from jaxdyn.cli.tour._tour import tour

    return 0 if tour(arguments.out).passed else 1
