"""A kernel agrees with the plain function under every transformation and at every batch size."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn._numerics import kernel
from jaxdyn._numerics._lanes import ALIGNED, SUM_LANES, _block_size

RNG = np.random.default_rng(0)
A = jnp.array([2.0, 3.0])
X = jnp.asarray(RNG.normal(size=(135, 3)))
NESTED = X.reshape(5, 27, 3)


def formula(static, a, x):
    return {"y": jnp.sin(x) * a[0] * static, "z": (x * x).sum(0) * a[1]}


wide = kernel(formula)


def plain(static, a, x):
    return jax.tree.map(lambda y: y[..., 0], formula(static, a[:, None], x[:, None]))


def energy(fun):
    def scalar(a, x):
        out = fun(2.0, a, x)
        return (out["y"] ** 2).sum() + out["z"] ** 2

    return scalar


def sum_over_batch(scalar):
    return lambda a, x: jax.vmap(lambda y: scalar(a, y))(x).sum()


def assert_close(result, expected):
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    jax.tree.map(close, result, expected)


TRANSFORMATIONS = {
    "one sample": lambda f: f(2.0, A, X[0]),
    "grad": lambda f: jax.grad(energy(f), (0, 1))(A, X[0]),
    "jvp": lambda f: jax.jvp(energy(f), (A, X[0]), (A, X[1])),
    "jvp in one argument": lambda f: jax.jvp(lambda a: sum_over_batch(energy(f))(a, X), (A,), (A,)),
    "jacfwd": lambda f: jax.jacfwd(energy(f), 1)(A, X[0]),
    "jacrev": lambda f: jax.jacrev(lambda x: f(2.0, A, x)["y"])(X[0]),
    "hessian": lambda f: jax.hessian(energy(f), (0, 1))(A, X[0]),
    "vmap, one shared": lambda f: jax.vmap(lambda x: f(2.0, A, x))(X),
    "vmap, both batched": lambda f: jax.vmap(lambda a, x: f(2.0, a, x))(X[:, :2], X),
    "vmap, only the other": lambda f: jax.vmap(lambda a: f(2.0, a, X[0]))(X[:, :2]),
    "vmap over axis 1": lambda f: jax.vmap(lambda x: f(2.0, A, x), 1, -1)(X.T),
    "vmap of grad": lambda f: jax.vmap(jax.grad(energy(f), (0, 1)), (None, 0))(A, X),
    "vmap of hessian": lambda f: jax.vmap(jax.hessian(energy(f), (0, 1)), (None, 0))(A, X),
    "grad of vmap": lambda f: jax.grad(sum_over_batch(energy(f)), (0, 1))(A, X),
    "grad of vmap of grad": lambda f: jax.grad(
        lambda a, x: jax.vmap(lambda y: jax.grad(energy(f), 1)(a, y))(x).sum(), (0, 1)
    )(A, X),
    "nested vmap": lambda f: jax.vmap(jax.vmap(lambda x: energy(f)(A, x)))(NESTED),
    "nested vmap, inner only": lambda f: jax.vmap(
        lambda a: jax.vmap(lambda x: energy(f)(a, x))(X[:27])
    )(NESTED[:, 0, :2]),
    "vmap of grad of vmap": lambda f: jax.vmap(jax.grad(sum_over_batch(energy(f)), (0, 1)), (None, 0))(A, NESTED),
    "vmap of grad of vmap, all batched": lambda f: jax.vmap(jax.grad(sum_over_batch(energy(f)), (0, 1)))(
        jnp.ones((5, 2)), NESTED
    ),
}  # fmt: skip


#: these cases nest transformations more deeply than the others
LONG = (
    "hessian",
    "vmap of grad of vmap",
    "vmap of hessian",
    "grad of vmap of grad",
    "vmap of grad of vmap, all batched",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in LONG)) for name in TRANSFORMATIONS]
)
def test_a_kernel_agrees_with_the_plain_function_under_transformations(name):
    transform = TRANSFORMATIONS[name]
    result, expected = jax.jit(lambda: (transform(wide), transform(plain)))()
    assert_close(result, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one sample", "grad", "vmap, one shared", "vmap of grad"])
def test_a_kernel_runs_outside_jit(name):
    transform = TRANSFORMATIONS[name]
    assert_close(transform(wide), transform(plain))


@pytest.mark.slow
def test_a_kernel_runs_with_jit_disabled():
    with jax.disable_jit():
        result = TRANSFORMATIONS["vmap of grad"](wide)
    assert_close(result, TRANSFORMATIONS["vmap of grad"](plain))


@pytest.mark.parametrize("size", [0, 1, 63, 65, 135, 4096])
def test_values_and_gradients_at_every_batch_size(size):
    x = jnp.asarray(np.random.default_rng(size).normal(size=(size, 3)))
    both = lambda x: [jax.value_and_grad(sum_over_batch(energy(f)), (0, 1))(A, x) for f in (wide, plain)]
    (value, (da, dx)), (expected, (da_plain, dx_plain)) = jax.jit(both)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(da, da_plain, rtol=1e-11)  # sum_over_batch over the batch in another order
    np.testing.assert_allclose(dx, dx_plain, rtol=1e-12)


BODIES = {
    "unused argument": lambda s, a, x: (x * 2,),
    "argument passed through": lambda s, a, x: (x, a * x),
    "one result twice": lambda s, a, x: (a * x,) * 2,
    "constant result": lambda s, a, x: (jnp.zeros((3, 1)), a * x),
    "constants": lambda s, a, x: (a * x + np.arange(3.0)[:, None],),
    "argument that folds away": lambda s, a, x: (x * jnp.where(jnp.arange(3)[:, None] > 5, a, 1.0),),
    "empty result": lambda s, a, x: (x[:0], a * x),
    "scan": lambda s, a, x: jax.lax.scan(lambda c, y: (c + y, c * y), x[0], a + x),
    "scan, result dropped": lambda s, a, x: jax.lax.scan(lambda c, y: (c + y, c), x[0], a + x)[:1],
    "gather": lambda s, a, x: (x[jnp.array([2, 1, 0, 0])] * a[0],),
    "static gather": lambda s, a, x: (jnp.take(x, np.array([2, 1, 0, 0]), axis=0) * a[0],),
    "cond": lambda s, a, x: (jax.lax.cond(jnp.all(x > 0), lambda x: x * a, lambda x: a * x, x),),
    "outer product": lambda s, a, x: (jnp.einsum("il,jl->ijl", x, x + a),),
    "matrix product": lambda s, a, x: (jnp.einsum("ij,jl->il", jnp.eye(3)[::-1], x + a),),
    "cumulative sum": lambda s, a, x: (jnp.cumsum(x + a, 0),),
    "scatter": lambda s, a, x: (x.at[jnp.array([0, 2])].add(a[:2]),),
    "update": lambda s, a, x: (x.at[1].set(a[0] * x[0]),),
    "sort": lambda s, a, x: (jnp.sort(x + a, 0),),
    "cholesky": lambda s, a, x: (
        jax.vmap(lambda y: jnp.linalg.cholesky(jnp.outer(y, y) + 9 * jnp.eye(3)), -1, -1)(x * a),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_kernels_of_many_primitives(name):
    body = BODIES[name]
    x, a = X[:130], jnp.array([1.0, 2.0, 3.0])
    wide = kernel(body)
    total = lambda y: sum(t.sum() for t in y)

    def run(one):
        values = jax.vmap(lambda y: one(a, y))(x)
        gradient = jax.vmap(jax.grad(lambda y: total(one(a, y))))(x)
        return one(a, x[0]), values, gradient

    plain = lambda a, x: tuple(y[..., 0] for y in body(None, a[:, None], x[:, None]))
    result, expected = jax.jit(lambda: (run(lambda a, x: wide(None, a, x)), run(plain)))()
    assert_close(result, expected)


def test_a_custom_pullback_is_used_and_differentiated():
    called = []

    def pull(static, args, cts):
        called.append(static)
        return cts[0] * args[1], cts[0] * args[0]

    product = kernel(lambda s, a, x: (a * x).sum(0), pullback=lambda s, args, cts: pull(s, args, cts))
    f = lambda a, x: product("product", a, x)
    a = X[1]
    da, dx = jax.vmap(jax.grad(f, (0, 1)), (None, 0))(a, X)
    assert called
    np.testing.assert_allclose(da, X, rtol=1e-15)
    np.testing.assert_allclose(dx, jnp.broadcast_to(a, X.shape), rtol=1e-15)
    shared = jax.grad(lambda a: jax.vmap(lambda x: f(a, x))(X).sum())(a)
    np.testing.assert_allclose(shared, X.sum(0), rtol=1e-12)
    cross = jax.jacfwd(jax.grad(f), 1)(a, X[0])
    np.testing.assert_allclose(cross, np.eye(3), atol=1e-15)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_a_kernel_lowers_for_every_platform(platform):
    gradient = jax.jit(lambda a, x: jax.vmap(jax.grad(energy(wide), (0, 1)), (None, 0))(a, x))
    exported = jax.export.export(gradient, platforms=[platform])(A, X)
    assert exported.platforms == (platform,)


def test_one_trace_per_shape():
    traces = []

    def body(static, a, x):
        traces.append(x.shape)
        return a[0] * x

    counted = kernel(body)
    run = jax.jit(lambda a, x: jax.vmap(lambda y: counted(None, a, y))(x))
    run(A, X)
    first = len(traces)
    for scale in (1.0, 2.0, np.float64(3.0)):  # weak types, and numpy's, are the same kernel
        run(A * scale, X)
        counted(None, A * scale, X[0])
    once = len(traces)
    jax.jit(lambda a, x: jax.vmap(lambda y: counted(None, a, y))(x))(A, X)
    counted(None, A, X[1])
    assert first <= 3  # its shapes, and the shape of a block
    assert once <= 5
    assert len(traces) == once


def test_a_weakly_typed_argument_does_not_retrace():
    traces = []

    def body(static, x):
        traces.append(x.shape)
        return 2 * x

    counted = kernel(body)
    strong = counted(None, jnp.float64(1.0))
    after = len(traces)
    weak = counted(None, 1.0)
    assert len(traces) == after
    assert weak == strong


@pytest.mark.slow
@pytest.mark.parametrize("size", [256, 768, 4096])
def test_batches_with_many_results_are_padded_off_powers_of_two(size):
    """Nine results of a power of two of samples would share cache sets; padding does not enter sums."""
    powers = kernel(lambda _, a, x: tuple(a * x**k for k in range(1, 10)))
    x = jnp.asarray(np.random.default_rng(size).uniform(0.5, 1.5, size))
    for event_bytes in (80, 60_000, 1_000_000):
        lanes, blocks = _block_size(size, event_bytes, 9)
        assert 0 < lanes * blocks - size < size / 4 and lanes * blocks % ALIGNED and lanes % SUM_LANES == 0
        assert np.prod(_block_size(size, event_bytes, 7)) == size
    assert_close(jax.jit(jax.vmap(lambda x: powers(None, 2.0, x)))(x), tuple(2 * x**k for k in range(1, 10)))
    total = jax.jit(jax.grad(lambda a: sum(y.sum() for y in jax.vmap(lambda x: powers(None, a, x))(x))))(2.0)
    assert_close(total, sum((x**k).sum() for k in range(1, 10)))
