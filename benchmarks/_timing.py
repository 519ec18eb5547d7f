"""Timing of jitted and of plain calls, in microseconds an evaluation."""

import gc
import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Row:
    """One line of the table; times in microseconds an evaluation, compilation in seconds."""

    robot: str
    work: str
    dtype: str
    batch: int
    engine: str
    compile_s: float
    best_us: float
    median_us: float
    error: float  # largest deviation from the reference, relative to its largest entry
    note: str = ""  # why there are no times, if there are none


@dataclass(frozen=True)
class Effort:
    """How long to measure: seconds a figure, and at least so many repetitions."""

    seconds: float
    repetitions: int
    clock: Callable[[], float] = time.perf_counter


QUICK = Effort(0.12, 7)
FULL = Effort(1.5, 25)


def pin_to_core(core: int | None) -> int | None:
    """Keeps this process and its children on one core; to be called before jax is imported."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        return None
    available = sorted(os.sched_getaffinity(0))
    core = available[-1] if core < 0 else core
    os.sched_setaffinity(0, {core})
    return core


def measure(call, evaluations: int, effort: Effort) -> tuple[float, float]:
    """Best and median time of an evaluation; `call()` returns when its `evaluations` are done."""
    call()
    start = effort.clock()
    call()
    once = max(effort.clock() - start, 1e-7)
    inner = max(1, int(1e-3 / once))  # calls between two readings of the clock: at least a millisecond
    times: list[float] = []
    gc.collect()
    gc.disable()
    end = effort.clock() + effort.seconds
    while len(times) < effort.repetitions or effort.clock() < end:
        start = effort.clock()
        for _ in range(inner):
            call()
        times.append((effort.clock() - start) / inner)
        if len(times) >= 3 and sum(times) * inner > 4 * effort.seconds:
            break  # one call takes longer than the whole effort
    gc.enable()
    scale = 1e6 / evaluations
    return min(times) * scale, statistics.median(times) * scale


def measure_jax(function, args, evaluations: int, effort: Effort):
    """Jits, and returns the result with seconds to compile, best and median microseconds.

    The first call traces, compiles and runs; the time of a later run is subtracted from it. It is processor
    time, which on one core is what the clock shows when nothing else runs. Arguments are put on the device
    before, and every call is waited for.
    """
    import jax

    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))  # start-up costs are nobody's compile time
    args = jax.block_until_ready(jax.device_put(args))
    jitted = jax.jit(function)
    start = time.process_time()
    result = jax.block_until_ready(jitted(*args))
    first = time.process_time() - start
    best, median = measure(lambda: jax.block_until_ready(jitted(*args)), evaluations, effort)
    return result, max(first - best * evaluations * 1e-6, 0.0), best, median


def deviation(value, reference) -> float:
    """Largest difference relative to the largest entry of the reference."""
    import numpy as np

    reference = np.asarray(reference, float)
    return float(np.abs(np.asarray(value, float) - reference).max() / max(np.abs(reference).max(), 1e-300))


def checked(row: Row, tolerance: float) -> Row:
    """The row itself, or one without times if its values disagree with the reference."""
    if row.error < tolerance:
        return row
    why = f"disagrees: relative deviation {row.error:.1e}, allowed {tolerance:.0e}"
    return replace(row, best_us=math.nan, median_us=math.nan, note=why)


def failed(robot: str, work: str, dtype: str, batch: int, engine: str, error: Exception) -> Row:
    """A row that says why nothing was timed."""
    nan = math.nan
    return Row(robot, work, dtype, batch, engine, nan, nan, nan, nan, f"failed: {error}".splitlines()[0])
