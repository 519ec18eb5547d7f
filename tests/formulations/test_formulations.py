"""All formulations agree with `rnea`, `mass_matrix` and `forward_dynamics`, derivatives included."""

import functools as ft
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import formulations
from jaxdyn.formulations import AbstractFormulation, Lagrange, PlanarChain, SphericalChain
from tests.formulations._cases import COVERED, ROBOTS, TOLERANCE, batch, each, model, state, with_pitch
from tests.oracles import relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

#: compiled soonest
DEFAULT = ("TwistWrench-pair",)
#: compiled last; notebooks and benchmarks run Lagrange on other robots
LONG = ("Lagrange-ball_slide",)


def _pairs():
    """Each formulation with each robot that it covers; the first robot is slow if it compiles in seconds."""
    for formulation, robots in COVERED:
        for number, robot in enumerate(robots):
            name = f"{type(formulation).__name__}-{robot}"
            is_slow = number < 1 and name not in LONG
            marks = [] if name in DEFAULT else [pytest.mark.slow if is_slow else pytest.mark.exhaustive]
            yield pytest.param(formulation, robot, marks=marks, id=name)


@jit
def _reference(m, q, v, a, external):
    one = lambda m, q, v, a, e: (jd.mass_matrix(m, q), jd.bias_forces(m, q, v), jd.rnea(m, q, v, a, e))
    return jax.vmap(one)(m, q, v, a, external)


@ft.partial(jit, static_argnums=0)
def _evaluate_formulation(method, m, q, v, a, external):
    def one(m, q, v, a, e):
        tau = method.inverse_dynamics(m, q, v, a, e)
        again = jd.forward_dynamics(m, q, v, tau, e, method=method)
        return method.mass_matrix(m, q), method.bias(m, q, v), tau, again

    return jax.vmap(one)(m, q, v, a, external)


@pytest.mark.parametrize(("method", "robot"), list(_pairs()))
def test_formulations_agree_with_the_recursive_algorithms(method, robot):
    """Under jit and vmap over random robots and states, one at rest: M, h, inverse and forward dynamics."""
    m, q, v, a, external = batch(robot)
    wanted = (*_reference(m, q, v, a, external), a)
    got = _evaluate_formulation(method, m, q, v, a, external)
    for name, x, y in zip(("mass matrix", "bias", "inverse dynamics"), got, wanted, strict=False):
        for one, other in zip(x, y, strict=True):
            assert relative_error(one, other) < TOLERANCE, name
    assert np.abs(np.asarray(got[-1]) - np.asarray(a)).max() < TOLERANCE * np.abs(np.asarray(a)).max()


def _numbers(m):
    return m.links.mass, m.links.com, m.links.inertia, m.placements.translation, m.gravity, m.properties.armature


def _directions(m):
    return m.placements.rotation, m.joints


def _gradients(method, m, q, v, tau):
    """Derivatives of a scalar of the accelerations with respect to link parameters, axes and state, in a batch."""

    def scalar(numbers, axes, q, v, tau, m):
        other = eqx.tree_at(_numbers, eqx.tree_at(_directions, m, axes), numbers)
        a = jd.forward_dynamics(other, q, v, tau, method=method)
        return jnp.cos(jnp.arange(1, a.size + 1)) @ a

    one = jax.grad(scalar, (0, 1, 2, 3, 4))
    numbers, axes, *state = jax.vmap(one)(_numbers(m), _directions(m), q, v, tau, m)
    return (numbers, *state), axes


_reference_slopes = jit(ft.partial(_gradients, None))
_formulated_slopes = ft.partial(jit, static_argnums=0)(_gradients)


@pytest.mark.slow("TwistWrench")
@pytest.mark.parametrize(("method", "robot"), each())
def test_gradients_agree(method, robot):
    """`grad` of forward dynamics under jit and vmap with respect to all types of leaves and the state, also at rest.

    But for axes of a planar chain: most of their directions lead to robots that it does not cover.
    """
    m, q, v, a, _ = batch(robot)
    wanted = _reference_slopes(m, q, v, a)
    got = _formulated_slopes(method, m, q, v, a)
    if isinstance(method, PlanarChain):
        wanted, got = wanted[0], got[0]
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert np.abs(np.asarray(y)).max() > 1e-3
        for one, other in zip(np.asarray(x), np.asarray(y), strict=True):
            assert np.abs(one - other).max() < TOLERANCE * max(1, np.abs(other).max())


@pytest.mark.exhaustive
@pytest.mark.parametrize(("method", "robots"), COVERED, ids=lambda x: type(x).__name__)
def test_gradients_of_inverse_dynamics_agree(method, robots):
    """Gradients with respect to the state."""
    m, (q, v, a, external) = model(robots[0]), state(robots[0])
    weights = jnp.cos(jnp.arange(m.nv))
    slope = lambda f: jit(jax.grad(lambda q, v, a, e: weights @ f(m, q, v, a, e), (0, 1, 2, 3)))(q, v, a, external)
    for x, y in zip(slope(method.inverse_dynamics), slope(jd.rnea), strict=True):
        assert relative_error(x, y) < TOLERANCE


@pytest.mark.slow("PlanarChain", "SphericalChain")
@pytest.mark.parametrize(("method", "robot"), each())
def test_single_precision_stays_single(method, robot):
    m = model(robot).astype(jnp.float32)
    q, v = jd.neutral(m), jnp.zeros(m.nv, jnp.float32)
    out = jax.eval_shape(
        lambda q, v: (method.mass_matrix(m, q), method.inverse_dynamics(m, q, v, v), method(m, q, v, v)), q, v
    )
    assert {x.dtype for x in out} == {jnp.dtype("float32")}


@pytest.mark.slow
def test_singular_mass_matrix_gives_nan():
    """The accelerations are NaN if the mass matrix is not positive definite."""
    m = model("hinges")
    links = (m.links.mass.at[-1].set(0), m.links.inertia.at[-1].set(0), jnp.zeros_like(m.properties.armature))
    bare = eqx.tree_at(lambda m: (m.links.mass, m.links.inertia, m.properties.armature), m, links)
    q = jnp.array([0.3, -0.4])
    assert not np.isfinite(jit(ft.partial(jd.forward_dynamics, method=PlanarChain()))(bare, q, q, q)).any()


def test_absolute_pitch_of_a_right_angle_gives_nan():
    """The angles are singular there: all results and derivatives are NaN; nearby none is."""
    m = model("balls")
    angles = jit(lambda q: formulations.absolute_angles(m, q))
    turned = lambda pitch: with_pitch(m, pitch)
    assert np.isnan(angles(turned(np.pi / 2))).all()
    near = angles(turned(np.pi / 2 - 1e-4))
    assert abs(float(near[1]) - (np.pi / 2 - 1e-4)) < 1e-10
    assert "NaN" in (SphericalChain.__doc__ or "")


@pytest.mark.parametrize(("method", "robots"), COVERED, ids=lambda x: type(x).__name__)
def test_coverage(method, robots):
    """Other models raise an error at trace time, with the name of a joint or link."""
    for robot in ROBOTS:
        m = model(robot)
        reason = method.covers(m)
        assert (reason is None) == (robot in robots), (robot, reason)
        if reason is not None:
            assert any(repr(name) in reason for name in (*m.joint_names, *m.link_names))
            q, v, _, _ = state(robot)
            with pytest.raises(jd.ModelError, match=type(method).__name__) as caught:
                jax.eval_shape(lambda q, v: jd.forward_dynamics(m, q, v, v, method=method), q, v)  # noqa: B023
            assert reason in str(caught.value)


def test_all_formulations_are_tested():
    public = {
        c
        for c in vars(formulations).values()
        if inspect.isclass(c) and issubclass(c, AbstractFormulation) and c is not AbstractFormulation
    }
    approximate = {formulations.NeglectedDeformation}  # tested against its source in tests/flexible
    assert public - approximate == {type(method) for method, _ in COVERED}


def test_wrong_shapes_raise_an_error():
    m = model("planar")
    with pytest.raises(jd.ShapeError, match="v has shape"):
        PlanarChain().bias(m, jnp.zeros(3), jnp.zeros(2))


def test_lagrange_covers_every_model():
    assert all(Lagrange().covers(model(robot)) is None for robot in ROBOTS)
