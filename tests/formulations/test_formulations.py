"""All formulations give the numbers of `rnea`, `mass_matrix` and `forward_dynamics`, and the derivatives of `rnea`."""

import functools as ft
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import formulations
from jaxdyn.formulations import AbstractFormulation, GibbsAppell, Hamilton, Lagrange, MomentumEquation, PlanarChain
from tests.formulations._cases import COVERED, ROBOTS, TOLERANCE, model, state
from tests.oracles import relative_error

jit = ft.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


RICH = ("floating", "geared", "balls")


def _pairs():
    """Each formulation with each robot that it covers; all but the cheapest are slow to compile.

    CI takes the first robot of each formulation and the richest if it compiles soon; the rest is run by hand.
    """
    for formulation, robots in COVERED:
        rich = next((robot for robot in RICH if robot in robots), robots[0])
        for robot in robots:
            heavy = isinstance(formulation, Lagrange | MomentumEquation | Hamilton) and robot == rich
            marks = (
                [pytest.mark.slow] if robot in (robots[0], rich) and not heavy else [pytest.mark.slow, pytest.mark.wide]
            )
            marks = [] if isinstance(formulation, PlanarChain) and robot == robots[0] else marks
            yield pytest.param(formulation, robot, marks=marks, id=f"{type(formulation).__name__}-{robot}")


def _of_gradients(formulation, robots):
    """One case of the gradients; those of differentiated energies take half a minute to compile."""
    heavy = isinstance(formulation, Lagrange | MomentumEquation | Hamilton | GibbsAppell)
    return pytest.param(formulation, robots, marks=[pytest.mark.wide] * heavy, id=type(formulation).__name__)


def _first():
    """Each formulation with its first robot, but those of the test above and those made of the pieces of Lagrange's."""
    for formulation, robots in COVERED:
        if not isinstance(formulation, PlanarChain | Hamilton | MomentumEquation):
            yield pytest.param(formulation, robots[0], id=f"{type(formulation).__name__}-{robots[0]}")


def _batch(robot):
    return tuple(map(jnp.stack, zip(state(robot, 0), state(robot, 1), strict=True)))


@jit
def _reference(m, q, v, a, external):
    one = lambda q, v, a, e: (jd.mass_matrix(m, q), jd.bias_forces(m, q, v), jd.rnea(m, q, v, a, e))
    return jax.vmap(one)(q, v, a, external)


@ft.partial(jit, static_argnums=0)
def _formulated(method, m, q, v, a, external):
    def one(q, v, a, e):
        tau = method.inverse_dynamics(m, q, v, a, e)
        again = jd.forward_dynamics(m, q, v, tau, e, method=method)
        return method.mass_matrix(m, q), method.bias(m, q, v), tau, again

    return jax.vmap(one)(q, v, a, external)


@pytest.mark.parametrize(("method", "robot"), list(_pairs()))
def test_formulations_agree(method, robot):
    """Under jit and vmap: mass matrix, bias, inverse dynamics with wrenches, and forward dynamics back again."""
    q, v, a, external = _batch(robot)
    wanted = (*_reference(model(robot), q, v, a, external), a)
    got = _formulated(method, model(robot), q, v, a, external)
    for name, x, y in zip(("mass matrix", "bias", "inverse dynamics", "forward dynamics"), got, wanted, strict=True):
        assert relative_error(x, y) < TOLERANCE, name


_rnea = jit(jd.rnea)


@ft.partial(jit, static_argnums=0)
def _inverse(method, m, q, v, a):
    return method.inverse_dynamics(m, q, v, a)


@pytest.mark.parametrize(("method", "robot"), list(_first()))
def test_inverse_dynamics_agrees(method, robot):
    """What takes longest to compile, without wrenches."""
    m, (q, v, a, _) = model(robot), state(robot)
    assert relative_error(_inverse(method, m, q, v, a), _rnea(m, q, v, a)) < TOLERANCE


def _slopes(f, m, q, v, a):
    """Derivatives of a scalar made of efforts: in numbers of links, in the directions of axes, and in the state."""
    weights = jnp.cos(jnp.arange(1, m.nv + 1))

    def scalar(links, axes, q, v, a):
        other = eqx.tree_at(_link_numbers, eqx.tree_at(_directions, m, axes), links)
        return weights @ f(other, q, v, a)

    links, axes, *state = jax.grad(scalar, (0, 1, 2, 3, 4))(_link_numbers(m), _directions(m), q, v, a)
    return (links, *state), axes


def _link_numbers(m):
    return m.links.mass, m.links.com, m.links.inertia, m.placements.translation, m.gravity


def _directions(m):
    return m.placements.rotation, m.joints


@jit
def _reference_slopes(m, q, v, a):
    return _slopes(jd.rnea, m, q, v, a)


@ft.partial(jit, static_argnums=0)
def _formulated_slopes(method, m, q, v, a):
    return _slopes(method.inverse_dynamics, m, q, v, a)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "robots"), [_of_gradients(*pair) for pair in COVERED])
def test_gradients_agree(method, robots):
    """`grad` in every kind of leaf and in the state is that of `rnea`.

    But for axes of a planar chain: most of their directions lead to robots that it does not cover.
    """
    m, (q, v, a, _) = model(robots[0]), state(robots[0])
    wanted = _reference_slopes(m, q, v, a)
    got = _formulated_slopes(method, m, q, v, a)
    if isinstance(method, PlanarChain):
        wanted, got = wanted[0], got[0]
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert np.abs(np.asarray(y)).max() > 1e-3
        assert relative_error(x, y) < TOLERANCE


@pytest.mark.parametrize(("method", "robots"), COVERED, ids=lambda x: type(x).__name__)
def test_what_is_covered_is_what_is_said(method, robots):
    """Others are refused when they are traced, with the name of a joint or link."""
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


def test_all_formulations_are_here():
    public = {
        c
        for c in vars(formulations).values()
        if inspect.isclass(c) and issubclass(c, AbstractFormulation) and c is not AbstractFormulation
    }
    assert public == {type(method) for method, _ in COVERED}


def test_wrong_shapes_are_refused():
    m = model("planar")
    with pytest.raises(jd.ShapeError, match="v has shape"):
        COVERED[0][0].bias(m, jnp.zeros(3), jnp.zeros(2))
