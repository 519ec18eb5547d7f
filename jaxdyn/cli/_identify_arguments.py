"""Arguments of `jaxdyn fit`."""

import argparse
from pathlib import Path

#: methods by their names in a configuration, and the classes of jaxdyn.identification that they are
METHODS = {
    "linear": "Linear",
    "physical": "Physical",
    "levenberg-marquardt": "LevenbergMarquardt",
    "first-order": "FirstOrder",
    "output-error": "OutputError",
    "low-passed": "LowPassed",
}


def add_arguments(parser: argparse.ArgumentParser):
    """Adds them to the parser of the command."""
    robot = "a URDF (.urdf), an MJCF (.xml, .mjcf), a saved model, or a name on the shelf such as panda"
    parser.add_argument("robot", metavar="ROBOT", help=robot)
    kinds = ".csv, .csv.gz, .npz, .parquet, .mat, .mcap, .db3, .bag"
    logs = f"a run: a file ({kinds}), the folder of a rosbag2, or several files of one run joined by +"
    parser.add_argument("logs", nargs="+", metavar="LOG", help=logs)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the results go")
    config = "columns, units, gears, filter, hold-out, parameters and method, .toml (see docs/identification.md)"
    parser.add_argument("--config", type=Path, metavar="FILE", help=config)
    parser.add_argument("--floating-base", action="store_true", help="the root of a URDF is free to move")
    folders = "where meshes of a URDF are"
    parser.add_argument("--package-dir", type=Path, action="append", default=[], metavar="DIR", help=folders)
