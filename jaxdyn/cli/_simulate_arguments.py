"""Arguments of `jaxdyn simulate`."""

import argparse
from pathlib import Path

#: solvers by their names on the command line, and the classes of diffrax or jaxdyn.simulation that they are
SOLVERS = {
    "tsit5": "Tsit5",
    "dopri5": "Dopri5",
    "dopri8": "Dopri8",
    "bosh3": "Bosh3",
    "heun": "Heun",
    "semi-implicit-euler": "SemiImplicitEuler",
    "variational": "Variational",
    "momentum": "MomentumForm",
}
INTERPOLATIONS = ("linear", "cubic", "hold")


def add_arguments(parser: argparse.ArgumentParser):
    """Adds them to the parser of the command."""
    robot = "a URDF (.urdf), an MJCF (.xml, .mjcf), a saved model, or a name on the shelf such as panda"
    parser.add_argument("robot", metavar="ROBOT", help=robot)
    parser.add_argument("--floating-base", action="store_true", help="the root of a URDF is free to move")
    folders = "where meshes of a URDF are"
    parser.add_argument("--package-dir", type=Path, action="append", default=[], metavar="DIR", help=folders)
    start = parser.add_argument_group("start")
    form = "numbers in the order of coordinates, or NAME=NUMBER for some"
    start.add_argument("--q", nargs="+", metavar="X", default=[], help=f"configuration: {form} (default: neutral)")
    start.add_argument("--v", nargs="+", metavar="X", default=[], help=f"velocity: {form} (default: rest)")
    time = parser.add_argument_group("time")
    time.add_argument("--time", type=_positive, default=5.0, metavar="S", help="how long, s (default: 5)")
    time.add_argument("--rate", type=_positive, default=100.0, metavar="HZ", help="rows a second (default: 100)")
    time.add_argument("--dt", type=_positive, metavar="S", help="fixed step, s (default: adapted to the tolerance)")
    time.add_argument("--tolerance", type=_positive, metavar="X", help="of adapted steps (default: 1e-8)")
    time.add_argument("--solver", choices=SOLVERS, default="tsit5", help="integrator (default: tsit5)")
    time.add_argument("--max-steps", type=int, default=1_000_000, metavar="N", help="at most so many (default: 1e6)")
    drive = parser.add_argument_group("what acts")
    table = "efforts as a table, .csv or .npz: a column t (s), and one of N m or N named as each joint that is driven"
    drive.add_argument("--control", type=Path, metavar="FILE", help=table)
    between = "between its rows (default: linear)"
    drive.add_argument("--interpolation", choices=INTERPOLATIONS, default="linear", help=between)
    stops = "joints rebound at their limits with this restitution, 0 to 1 (default: limits are not kept)"
    drive.add_argument("--stops", type=_restitution, metavar="E", help=stops)
    out = parser.add_argument_group("results")
    out.add_argument("--out", type=Path, metavar="FILE", help="trajectory: .csv, .npz or .parquet")
    out.add_argument("--plot", type=Path, metavar="FILE", help="picture: .png, .pdf or .svg")


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number


def _restitution(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number
