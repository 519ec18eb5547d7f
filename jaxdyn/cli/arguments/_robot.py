"""Arguments that name a robot and say how its file is read."""

import argparse
from pathlib import Path


def add_robot_argument(parser: argparse.ArgumentParser):
    """Adds the positional argument ROBOT: a file, or the name of a bundled robot."""
    robot = "a URDF (.urdf), an MJCF (.xml, .mjcf), a saved model, or the name of a bundled robot such as panda"
    parser.add_argument("robot", metavar="ROBOT", help=robot)


def add_urdf_options(parser: argparse.ArgumentParser):
    """Adds --floating-base and --package-dir."""
    parser.add_argument("--floating-base", action="store_true", help="attach the root of a URDF by a free joint")
    folder = "folder of the packages that hold the meshes of a URDF; may be repeated"
    parser.add_argument("--package-dir", type=Path, action="append", default=[], metavar="DIR", help=folder)
