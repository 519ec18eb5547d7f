"""Arguments of `jaxdyn simulate`."""

import argparse
from pathlib import Path

from jaxdyn.cli.arguments import add_robot_argument, add_urdf_options

#: classes of diffrax or jaxdyn.simulation by the names of the solvers on the command line
SOLVERS = {
    "tsit5": "Tsit5",
    "dopri5": "Dopri5",
    "dopri8": "Dopri8",
    "bosh3": "Bosh3",
    "heun": "Heun",
    "semi-implicit-euler": "SemiImplicitEuler",
    "variational": "Variational",
    "momentum": "CanonicalMomenta",
}
INTERPOLATIONS = ("linear", "cubic", "hold")


def add_parser(commands: argparse._SubParsersAction):
    """Adds the command `simulate`."""
    parser = commands.add_parser("simulate", help="simulate a robot from a file or a bundled one")
    add_robot_argument(parser)
    add_urdf_options(parser)
    start = parser.add_argument_group("initial state")
    form = "all numbers in the order of the coordinates, or NAME=NUMBER for some of them"
    start.add_argument("--q", nargs="+", metavar="X", default=[], help=f"configuration: {form} (default: neutral)")
    start.add_argument("--v", nargs="+", metavar="X", default=[], help=f"velocity: {form} (default: zero)")
    time = parser.add_argument_group("time and integration")
    # numbers stay texts until they are read by their descriptions in `_options.py`
    time.add_argument("--time", default="5", metavar="S", help="duration, s (default: 5)")
    time.add_argument("--rate", default="100", metavar="HZ", help="output rate, Hz (default: 100)")
    time.add_argument("--dt", metavar="S", help="fixed step, s (default: adaptive steps)")
    time.add_argument("--tolerance", metavar="X", help="tolerance of adaptive steps (default: 1e-8)")
    time.add_argument("--solver", choices=SOLVERS, default="tsit5", help="integrator (default: tsit5)")
    time.add_argument("--max-steps", default="1000000", metavar="N", help="maximal number of steps (default: 1000000)")
    drive = parser.add_argument_group("efforts and joint limits")
    table = (
        "table of efforts or of inputs, .csv or .npz: a column t (s), and columns named after driven joints (N m or N) "
        "or after actuators in the file (their inputs, within their ranges)"
    )
    drive.add_argument("--control", type=Path, metavar="FILE", help=table)
    between = "interpolation between the rows of the table (default: linear)"
    drive.add_argument("--interpolation", choices=INTERPOLATIONS, default="linear", help=between)
    stops = "joints rebound at their limits with this restitution, 0 to 1 (default: limits are ignored)"
    drive.add_argument("--stops", metavar="E", help=stops)
    out = parser.add_argument_group("results")
    out.add_argument("--out", type=Path, metavar="FILE", help="trajectory: .csv, .npz or .parquet")
    out.add_argument("--plot", type=Path, metavar="FILE", help="figure: .png, .pdf or .svg")
    out.add_argument("--gif", type=Path, metavar="FILE", help="animation: .gif, or .mp4 with ffmpeg")
    out.add_argument("--html", type=Path, metavar="FILE", help="page that shows the motion in a browser: .html")
    parser.set_defaults(run=run_simulate)


def run_simulate(arguments: argparse.Namespace) -> int:
    """Simulates in double precision and returns the exit code."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from jaxdyn.cli.simulate._simulate import simulate_file
    from jaxdyn.cli.terminal import run_and_report_errors

    return run_and_report_errors("simulate", lambda: simulate_file(arguments))
