"""The sections of `core.py`, each run in a process of its own: one precision, one set of engines."""

from collections.abc import Iterator

import numpy as np

from benchmarks._problems import GRAD_MODEL, GRAD_STATE, JACOBIAN, TOLERANCE, VALUES, WORKS, Problem, problem
from benchmarks._timing import Effort, Row, checked, deviation, failed, measure_jax

CHECKED = 64  # samples of a batch that are compared with the reference


def _reference(p: Problem):
    from benchmarks import _pinocchio

    return _pinocchio.Reference(p)


def _jaxdyn_error(reference, work: str, value, batch: int) -> float:
    """Deviation from Pinocchio; gradients are compared through its Jacobians and by central differences."""
    p, n = reference.p, min(batch, CHECKED)
    first = lambda x: np.asarray(x)[:n] if batch > 1 else np.asarray(x)[None]
    if work == GRAD_MODEL:
        grad = float(np.sum(np.asarray(value.links.mass) * np.asarray(p.model.links.mass)))
        return deviation(grad, mass_derivative(p, batch))
    if work == JACOBIAN:
        return max(deviation(first(x), y) for x, y in zip(value, reference.value(work, n), strict=True))
    if work == GRAD_STATE:
        jacobians = reference.value(JACOBIAN, n)
        skip = int(p.floating)  # coordinates of a quaternion have no counterpart there
        pairs = list(zip(value, jacobians, strict=True))[skip:]
        return max(deviation(first(x), np.einsum("i,nij->nj", p.weights, y)) for x, y in pairs)
    return deviation(first(value), reference.value(work, n))


def mass_derivative(p: Problem, batch: int, step=1e-5) -> float:
    """Derivative of the scalar when all masses grow together, by central differences in Pinocchio."""
    import equinox as eqx

    def scalar(factor):
        model = eqx.tree_at(lambda m: m.links.mass, p.model, p.model.links.mass * factor)
        moved = _reference(Problem(p.name, model, *(x[:batch] for x in (p.q, p.v, p.a, p.tau)), p.weights))
        return float(np.sum(moved.value("forward dynamics", batch) @ p.weights))

    return (scalar(1 + step) - scalar(1 - step)) / (2 * step)


def _tolerance(work: str, dtype: str) -> float:
    return max(TOLERANCE[dtype], 1e-5 if work == GRAD_MODEL else 0.0)


def jaxdyn_rows(p: Problem, dtype: str, batches, effort: Effort, works=WORKS, *, check=True) -> Iterator[Row]:
    """jaxdyn alone, largest batch first so that no trace is left over from a smaller one."""
    reference = _reference(p) if check else None
    for batch in sorted(batches, reverse=True):
        for work in works:
            try:
                yield from _jaxdyn_row(p, work, dtype, batch, effort, reference)
            except Exception as error:
                yield failed(p.name, work, dtype, batch, "jaxdyn", error)


def _jaxdyn_row(p: Problem, work: str, dtype: str, batch: int, effort: Effort, reference) -> Iterator[Row]:
    from benchmarks import _jaxdyn

    function, args = _jaxdyn.case(work, p, dtype, batch)
    value, *times = measure_jax(function, args, batch, effort)
    error = _jaxdyn_error(reference, work, value, batch) if reference else 0.0
    yield checked(Row(p.name, work, dtype, batch, _jaxdyn.ENGINE, *times, error), _tolerance(work, dtype))
    if batch == 1 and work in VALUES:
        model, *rest = args
        _, *times = measure_jax(lambda *rest: function(model, *rest), rest, 1, effort)
        yield Row(p.name, work, dtype, 1, _jaxdyn.CONSTANT, *times, error)


def peer_rows(engine, p: Problem, dtype: str, batches, effort: Effort) -> Iterator[Row]:
    """A JAX library with `cases(problem)`: values and times of the works that it offers."""
    import jax
    import jax.numpy as jnp

    reference = _reference(p)
    for work, (function, constants, state, back) in engine.cases(p).items():
        expected = {}
        for batch in batches:
            n = min(batch, CHECKED)
            index = slice(batch) if batch > 1 else 0
            args = [jnp.asarray(x[index], dtype) for x in state]
            axes = (*(None for _ in constants), *(0 for _ in args))
            run = jax.vmap(function, axes) if batch > 1 else function
            try:
                value, *times = measure_jax(run, (*constants, *args), batch, effort)
            except Exception as error:
                yield failed(p.name, work, dtype, batch, engine.ENGINE, error)
                continue
            value = np.asarray(value, float)[:n] if batch > 1 else np.asarray(value, float)[None]
            if n not in expected:
                expected[n] = reference.value(work, n)
            padded = np.concatenate([value, np.zeros((len(p.q) - n, *value.shape[1:]))])
            error = deviation(back(padded)[:n], expected[n])
            yield checked(Row(p.name, work, dtype, batch, engine.ENGINE, *times, error), TOLERANCE[dtype])


def run(engine: str, dtype: str, robots, batches, effort: Effort, *, quick: bool) -> Iterator[Row]:
    """All rows of one section; `quick` takes gradients only in float64, at the largest batch."""
    import importlib

    module = importlib.import_module(f"benchmarks._{engine}")
    for name in robots:
        p = problem(name, max(batches))
        if engine == "pinocchio":
            yield from module.rows(p, effort)
        elif engine == "jaxdyn":
            for batch in sorted(batches, reverse=True):
                some = quick and (batch < max(batches) or dtype == "float32")
                yield from jaxdyn_rows(p, dtype, (batch,), effort, (*VALUES, JACOBIAN) if some else WORKS)
        else:
            yield from peer_rows(module, p, dtype, (1,) if engine == "frax" else batches, effort)
