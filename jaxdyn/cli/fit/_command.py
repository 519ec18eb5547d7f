"""Arguments of `jaxdyn fit`."""

import argparse
from pathlib import Path

from jaxdyn.cli.arguments import add_robot_argument, add_urdf_options


def add_parser(commands: argparse._SubParsersAction):
    """Adds the command `fit`."""
    parser = commands.add_parser("fit", help="identify the parameters of a robot from logs and write a report")
    add_robot_argument(parser)
    kinds = ".csv, .csv.gz, .npz, .parquet, .mat, .mcap, .db3, .bag"
    logs = f"one run: a file ({kinds}), the folder of a rosbag2, or several files of the run, joined by +"
    parser.add_argument("logs", nargs="+", metavar="LOG", help=logs)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results")
    config = "columns, units, gears, filter, hold-out, parameters and method, .toml (see docs/identification.md)"
    parser.add_argument("--config", type=Path, metavar="FILE", help=config)
    add_urdf_options(parser)
    parser.set_defaults(run=run_fit)


def run_fit(arguments: argparse.Namespace) -> int:
    """Fits in double precision and returns the exit code, which is 1 too if the fit did not converge."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from jaxdyn.cli.fit._fit import fit_files
    from jaxdyn.cli.terminal import run_and_report_errors

    return run_and_report_errors("fit", lambda: fit_files(arguments))
