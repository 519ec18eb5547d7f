"""Outcomes of solvers: integers that arrays carry, names and sentences that people read."""

import enum

import jax
import numpy as np
from jax import core


class Status(enum.IntEnum):
    """An outcome: an integer with a name and a sentence; `str(status)` is both."""

    sentence: str

    def __new__(cls, value: int, sentence: str):
        """A member written `NAME = value, "sentence"`."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}"


def describe_status(kind: type[Status], status: jax.Array) -> str:
    """Name and sentence of one outcome; the number of each outcome of a batch; the shape while a function is traced."""
    if isinstance(status, core.Tracer):
        return f"traced, of shape {status.shape}"
    values, counts = np.unique(np.asarray(status), return_counts=True)
    if np.ndim(status) == 0:
        return str(kind(int(values[0])))
    return ", ".join(f"{count} {kind(int(value)).name}" for value, count in zip(values, counts, strict=True))
