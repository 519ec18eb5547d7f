"""The typed description of every number that `jaxdyn simulate` is given."""

import argparse

from jaxdyn._errors import ModelError
from jaxdyn.cli.schema import Number, Whole

_POSITIVE_SECONDS = Number(0, 1e9, is_above=True)
#: numbers by the name of their argument
NUMBERS: dict[str, Number | Whole] = {
    "time": _POSITIVE_SECONDS,
    "rate": Number(0, 1e9, is_above=True),
    "dt": _POSITIVE_SECONDS,
    "tolerance": Number(0, 1, is_above=True),
    "max_steps": Whole(1, 2_000_000_000),
    "stops": Number(0, 1),
}
#: an entry of the initial state
COORDINATE = Number()
#: greatest number of rows times coordinates: 0.8 GB for the configurations alone
_MOST_ENTRIES = 100_000_000


def read_numbers(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments with numbers instead of texts; numbers out of range raise `ModelError`."""
    read = {
        name: kind.parse(text, f"--{name.replace('_', '-')}")
        for name, kind in NUMBERS.items()
        if (text := getattr(arguments, name)) is not None
    }
    if arguments.dt is not None and arguments.tolerance is not None:
        raise ModelError("--dt sets fixed steps and --tolerance adaptive ones; give one of the two")
    return argparse.Namespace(**{**vars(arguments), **read})


def count_rows(time: float, rate: float, width: int) -> int:
    """The number of output intervals; raises `ModelError` if the rows, of `width` coordinates, would not fit memory."""
    count, most = round(time * rate), _MOST_ENTRIES // max(width, 1)
    if count > most:
        raise ModelError(
            f"--time {time:g} and --rate {rate:g} give {count:.3g} rows, expected at most {most} for this robot; lower "
            "one of the two"
        )
    return max(count, 1)
