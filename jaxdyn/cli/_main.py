"""Arguments of the `jaxdyn` command."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from jaxdyn.cli._identify_arguments import add_arguments as add_fit_arguments
from jaxdyn.cli._simulate_arguments import add_arguments as add_simulate_arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command with `argv` (by default that of the process) and returns its exit code."""
    arguments = _parser().parse_args(argv)
    return arguments.run(arguments)


def _parser() -> argparse.ArgumentParser:
    from importlib.metadata import version

    parser = argparse.ArgumentParser("jaxdyn", description="Differentiable multibody dynamics in JAX.")
    parser.add_argument("--version", action="version", version=f"jaxdyn {version('jaxdyn')}")
    commands = parser.add_subparsers(title="commands", required=True, dest="command")
    tour = commands.add_parser("tour", help="what the library does, shown on a seven-joint arm")
    tour.add_argument("--out", type=Path, default=Path("jaxdyn-tour"), metavar="DIR", help="where plots go")
    tour.set_defaults(run=_tour)
    info = commands.add_parser("info", help="tree, masses, degrees of freedom, limits and report of a robot file")
    info.add_argument("file", type=Path, metavar="FILE", help="a URDF (.urdf), an MJCF (.xml, .mjcf) or a saved model")
    info.add_argument("--floating-base", action="store_true", help="the root of a URDF is free to move")
    info.add_argument(
        "--package-dir", type=Path, action="append", default=[], metavar="DIR", help="where meshes of a URDF are"
    )
    info.add_argument("--allow-absolute", action="store_true", help="meshes of a URDF may be absolute paths")
    info.set_defaults(run=_info)
    simulate = commands.add_parser("simulate", help="motion of a robot from a file or from the shelf")
    add_simulate_arguments(simulate)
    simulate.set_defaults(run=_simulate)
    fit = commands.add_parser("fit", help="parameters of a robot from logs of its motion, with a report")
    add_fit_arguments(fit)
    fit.set_defaults(run=_fit)
    return parser


def _tour(arguments: argparse.Namespace) -> int:
    import jax

    jax.config.update("jax_enable_x64", True)  # this process is the application, so the choice is its own
    from jaxdyn.cli._tour import tour

    return 0 if tour(arguments.out).passed else 1


def _info(arguments: argparse.Namespace) -> int:
    import sys

    import jax

    jax.config.update("jax_enable_x64", True)  # numbers as they are in the file
    from jaxdyn import JaxdynError
    from jaxdyn.cli._info import describe, read_model

    try:
        where = {"package_dirs": arguments.package_dir, "allow_absolute": arguments.allow_absolute}
        print(describe(read_model(arguments.file, arguments.floating_base, **where)))
    except JaxdynError as error:
        print(f"jaxdyn info: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


def _simulate(arguments: argparse.Namespace) -> int:
    import jax

    jax.config.update("jax_enable_x64", True)
    from jaxdyn.cli._simulate import command

    return command(arguments)


def _fit(arguments: argparse.Namespace) -> int:
    import jax

    jax.config.update("jax_enable_x64", True)
    from jaxdyn.cli._identify import command

    return command(arguments)
