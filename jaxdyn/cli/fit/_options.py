"""The typed description of every entry of a configuration of `jaxdyn fit`: type, range and shape."""

from collections.abc import Mapping

from jaxdyn.cli.fit._motors import INPUTS, MOTORS, SYNCHRONOUS_MOTORS
from jaxdyn.cli.schema import (
    AbstractKind,
    Choice,
    Fields,
    Flag,
    ListOf,
    Named,
    Number,
    OneOf,
    Pair,
    TableOf,
    Text,
    Whole,
)

# Limits of magnitude: times in s, frequencies in Hz. Counts are limited where memory or time is proportional to them.
_LONGEST, _FASTEST = 1e6, 1e6
_TEXT = Text()
_NAMES = ListOf(_TEXT)
_POSITIVE, _ZERO_OR_MORE = Number(0, is_above=True), Number(0)
_SECONDS, _POSITIVE_SECONDS = Number(0, _LONGEST), Number(0, _LONGEST, is_above=True)
_HERTZ = Number(0, _FASTEST, is_above=True)
_DELAY = Number(-_LONGEST, _LONGEST)
_FROM_TO = Pair(Number(), "[from, to] in s")


def _for_each_joint(number: Number) -> AbstractKind:
    """One number for all joints, a list in the order of the coordinates, or numbers by joint."""
    return OneOf((number, ListOf(number, 1), TableOf(number)))


_SOURCE = Fields(
    {
        "pattern": OneOf((_TEXT, ListOf(_TEXT, 1), TableOf(_TEXT))),
        "unit": _TEXT,
        "table": _TEXT,
        "missing": Number(),
        **dict.fromkeys(("gear", "sign", "gain", "offset"), _for_each_joint(Number())),
    },
    required={"pattern": "the pattern of the column names"},
)
COLUMN_PATTERN = "the pattern of its column names, such as 'q.{joint}'"
_COLUMNS = Fields(
    {
        "time": _TEXT,
        "time_unit": _TEXT,
        "valid": _TEXT,
        "names": TableOf(_TEXT),
        **dict.fromkeys(("inputs", "measured"), TableOf(OneOf((_TEXT, _SOURCE)))),
        **dict.fromkeys(("position", "velocity", "acceleration", "effort"), OneOf((_TEXT, _SOURCE))),
    },
    required={"position": COLUMN_PATTERN},
)
_PREPARATION = Fields(
    {
        "rate": _HERTZ,
        "longest_gap": _POSITIVE_SECONDS,
        "low_pass": Flag(),
        "cutoff": _HERTZ,
        "order": Whole(1, 100),
        "differentiate": Flag(),
        "effort_delay": OneOf((_DELAY, TableOf(_DELAY), Choice(("estimate",)))),
        "longest_delay": _SECONDS,
        "edge": _SECONDS,
        "rest_speed": _ZERO_OR_MORE,
        "rest_time": _POSITIVE_SECONDS,
        "saturation": _POSITIVE,
        "saturation_time": _POSITIVE_SECONDS,
        "shortest": _SECONDS,
        "window": _FROM_TO,
    }
)
_HOLD_OUT = Fields(
    {
        "runs": ListOf(_TEXT, 1),
        "times": ListOf(_FROM_TO, 1),
        "share": Number(0, 1, is_above=True),
        "blocks": Whole(1, 10_000),
        "guard": _SECONDS,
    }
)
_ROBOT = Fields(
    {
        "lock": OneOf((_NAMES, TableOf(OneOf((Number(), ListOf(Number(), 1)))))),
        "remove": _NAMES,
    }
)

_COUNT = Whole(-1_000_000_000, 1_000_000_000)
_CHUNK, _REWEIGHT, _RTOL, _SEED = Whole(1, 10_000_000), Whole(0, 1_000), Number(0, 1), Whole(0, 2**31 - 1)
_PASSES: Mapping[str, AbstractKind] = {"reweight": _REWEIGHT, "chunk": _CHUNK}
_STEPS: Mapping[str, AbstractKind] = {**_PASSES, "max_steps": Whole(1, 1_000_000), "rtol": _RTOL}
#: options of each method
METHOD_OPTIONS: Mapping[str, Fields] = {
    "linear": Fields(_PASSES),
    "physical": Fields(_STEPS),
    "levenberg-marquardt": Fields({**_STEPS, "starts": Whole(1, 10_000), "spread": Number(0, 100), "seed": _SEED}),
    "first-order": Fields({**_STEPS, "least_gain": _RTOL, "batch_size": Whole(1, 10_000_000), "seed": _SEED}),
    "output-error": Fields({"chunk": _CHUNK}),
    "low-passed": Fields(
        {"cutoff": _HERTZ, "overlap": Whole(1, 1_000), "chunk": _CHUNK}, required={"cutoff": "a number of Hz"}
    ),
}
#: methods that wrap another method, their solver
WRAPPERS = ("output-error", "low-passed")
#: methods that a wrapper may wrap
INNER_METHODS = ("linear", "physical", "levenberg-marquardt")
#: entries of [fit] that only some methods accept
SPECIFIC_ENTRIES: Mapping[str, tuple[str, ...]] = {
    "windows": ("output-error",),
    "start": ("output-error",),
    "solver": WRAPPERS,
    "optimiser": ("first-order",),
}
WINDOWS = Fields(
    {
        "length": _POSITIVE_SECONDS,
        "stride": _POSITIVE_SECONDS,
        "every": Whole(1, 1_000_000),
        "lead": _SECONDS,
        "substeps": Whole(1, 1_000),
    }
)
PRIOR = Fields({"strength": _ZERO_OR_MORE, "spread": _ZERO_OR_MORE})
LOSSES = {name: Fields({"limit": _POSITIVE}) for name in ("huber", "cauchy")}
STARTS = {
    "measured": Fields({}),
    "free": Fields({"trust": _POSITIVE, "steps": Whole(1, 100), "scales": TableOf(_POSITIVE)}),
}
_FRICTION = ("coulomb", "viscous", "stribeck", "stribeck_velocity", "load_coefficient", "load_width", "width")
_PART_NUMBER = OneOf((Number(), ListOf(Number(), 1)))


def _describe_fit(method: str, inner: str) -> Fields:
    solver = METHOD_OPTIONS[inner]
    return Fields(
        {
            "method": Choice(tuple(METHOD_OPTIONS)),
            "parameters": ListOf(_TEXT, 1),
            "options": METHOD_OPTIONS[method],
            "friction": Fields(dict.fromkeys(_FRICTION, _PART_NUMBER)),
            "drive": Fields(dict.fromkeys(("gain", "offset", "delay"), _PART_NUMBER)),
            "motors": MOTORS,
            "synchronous_motors": SYNCHRONOUS_MOTORS,
            "inputs": INPUTS,
            "weights": ListOf(_ZERO_OR_MORE, 1),
            "bounds": TableOf(Pair(Number(may_be_infinite=True), "[lower, upper]")),
            "prior": PRIOR,
            "loss": Named(LOSSES),
            "optimiser": OneOf((_TEXT, TableOf(OneOf((_COUNT, Number(), Flag(), _TEXT))))),
            "windows": WINDOWS,
            "start": Named(STARTS),
            "solver": Fields({"method": Choice(INNER_METHODS), **solver.entries}, solver.required),
        }
    )


def describe_file(method: str, inner: str) -> Fields:
    """The whole file, for a fit by a method and, if this method is a wrapper, the inner method."""
    return Fields(
        {
            "robot": _ROBOT,
            "columns": _COLUMNS,
            "preparation": _PREPARATION,
            "hold_out": _HOLD_OUT,
            "fit": _describe_fit(method, inner),
        }
    )
