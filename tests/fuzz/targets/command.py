"""What the commands read: the configuration of a fit, the words of `jaxdyn simulate`, and tables of efforts."""

import contextlib
import functools
import io
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import jaxdyn as jd
from jaxdyn import JaxdynError
from jaxdyn.cli._main import _parser
from jaxdyn.cli.fit._config import read_config
from jaxdyn.cli.fit._method import build_method, build_prior
from jaxdyn.cli.simulate._control_table import read_control
from jaxdyn.cli.simulate._options import read_numbers
from jaxdyn.cli.simulate._simulate import read_start
from tests.fuzz.mutators import any_of, mutate_bytes, mutate_text
from tests.fuzz.target import Target, as_file, stored_regressions

_CONFIGS = (
    "[robot]\nlock = ['a', 'b']\nremove = ['hand']\n[hold_out]\ntimes = [[5.5, 7.9]]\nguard = 0.2\n",
    "[columns]\ntime = 'clock'\ntime_unit = 'ms'\nnames = { j1 = 'a' }\nvelocity = 'w\\[(?P<index>\\d+)\\]'\n"
    "position = { pattern = 'deg_{joint}', unit = 'deg', gear = [1.0, 2.0] }\n"
    "effort = { pattern = 'm_{joint}', unit = 'A', gain = { a = 1.0 }, table = 'drives' }\n",
    "[preparation]\nrate = 100\ncutoff = 10.0\nwindow = [0, 9]\neffort_delay = 'estimate'\nlongest_delay = 0.2\n"
    "[hold_out]\nshare = 0.2\nblocks = 4\n",
    "[fit]\nparameters = ['links[*].inertial', 'joints[*].damping']\nmethod = 'physical'\nweights = [1, 2]\n"
    "options = { reweight = 2, rtol = 1e-9 }\nloss = { name = 'huber', limit = 1.5 }\ndrive = {}\n"
    "[fit.prior]\nstrength = 0.1\n[fit.bounds]\n'joints[*].damping' = [0.0, inf]\n",
    "[fit]\nmethod = 'output-error'\nstart = 'free'\nfriction = { stribeck = 0.1, width = [1, 2] }\n"
    "[fit.windows]\nlength = 0.5\nevery = 3\n[fit.solver]\nmethod = 'levenberg-marquardt'\nstarts = 3\n",
    "[fit]\nmethod = 'first-order'\noptimiser = { name = 'adam', learning_rate = 0.05 }\n",
)
_MOST_WORDS = 100
_WORDS = (
    "--time 2.5 --rate 20 --dt 1e-3 --max-steps 1000 --solver heun",
    "--tolerance 1e-6 --stops 0.5 --q 0.1 --v rod_joint=-2 --control u.csv --interpolation hold",
)


@functools.cache
def _pendulum() -> jd.Model:
    return jd.robots.pendulum()


def _read_config(path: Path) -> object:
    """The validation of a configuration, with the method that it names."""
    config = read_config(path)
    return build_method(config), build_prior(config)


def _read_words(content: bytes) -> object:
    """The validation of `jaxdyn simulate`, up to the initial state."""
    words = content.decode("utf-8", "replace").split()[:_MOST_WORDS]
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            arguments = _parser().parse_args(["simulate", "pendulum", *words])
    except SystemExit as end:
        if end.code not in (0, 2):  # the help, and unknown options
            raise
        raise JaxdynError("usage") from None
    return read_start(_pendulum(), read_numbers(arguments))


def _read_control(path: Path) -> object:
    return read_control(path, _pendulum(), "linear")


def _tables() -> list[bytes]:
    joint = _pendulum().joint_names[-1]
    return [f"# torques\nt,{joint}\n0,1\n0.5,-2.5e-3\n1,4\n".encode(), f"effort.{joint},q.x,t\n1,2,0\n2,3,1\n".encode()]


def _archives() -> list[bytes]:
    joint, t = _pendulum().joint_names[-1], np.linspace(0.0, 1.0, 20)
    archives = []
    for write in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        write(file, **{"t": t, joint: np.sin(t), "about": np.array("{}")})
        archives.append(file.getvalue())
    return archives


def _config_regressions() -> Mapping[str, bytes]:
    texts = {
        "window": "[preparation]\nwindow = [" + "9" * 400 + ", 1]",
        "huge": "[fit]\nweights = [0x" + "f" * 9000 + "]",
        "deep": "a = " + "[" * 20_000,
        "dots": "a" + ".a" * 20_000 + " = 1",
        "lock": "[robot]\nlock = [[1]]",
        "table": "[columns]\nposition = '{joint}'\neffort = { pattern = '{joint}', table = '(' }",
        "endless pattern": "[columns]\nposition = '(?P<joint>(a+)+)b'\neffort = '{joint}'",
        "blocks": "[hold_out]\nshare = 0.5\nblocks = 1000000000",
    }
    return {name: text.encode() for name, text in texts.items()}


def _mutate_words(content: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changes words, and exchanges the value of one option."""
    words = content.decode("utf-8", "replace").split()
    if words and rng.random() < 0.5:
        extreme = ("1e12", "1e308", "-1", "0", "nan", "inf", "-inf", "1e-320", "9" * 5000, "0x1", "1_0", "", "x=1", "=")
        words[rng.randrange(len(words))] = rng.choice(extreme)
        return " ".join(words).encode()
    return mutate_text(content, rng, seeds)


TARGETS = [
    Target(
        "fit.toml",
        lambda: [text.encode() for text in _CONFIGS],
        as_file(".toml", _read_config),
        any_of(mutate_text, mutate_bytes),
        _config_regressions,
    ),
    Target("simulate", lambda: [text.encode() for text in _WORDS], _read_words, any_of(_mutate_words, mutate_bytes)),
    Target("control.csv", _tables, as_file(".csv", _read_control), any_of(mutate_text, mutate_bytes)),
    Target("control.npz", _archives, as_file(".npz", _read_control), mutate_bytes, stored_regressions("control")),
]
