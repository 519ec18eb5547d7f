"""Small systems with all types of constraints and stabilisations."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.spatial import Pose
from tests.oracles import random_model, random_state
from tests.simulation._leaf_parts import ARM, Case, Wave


class Rows(eqx.Module):
    """The matrix of a Pfaffian constraint, or its right-hand side."""

    size: jax.Array
    is_matrix: bool = eqx.field(static=True)

    def __call__(self, q, t):
        row = self.size * jnp.cos(q + t)
        return row[None] if self.is_matrix else row[:1]


class Bowl(eqx.Module):
    """A surface, or a function of the configuration."""

    depth: jax.Array

    def __call__(self, p):
        return p[2] - self.depth * (p[0] ** 2 + p[1] ** 2)


class Tilt(eqx.Module):
    """Two functions of a configuration."""

    size: jax.Array

    def __call__(self, x):
        return self.size * jnp.sin(x.q[:2]) + x.pose("l4").translation[:2]


class Carried(eqx.Module):
    """A motion of a frame."""

    rate: jax.Array

    def __call__(self, t):
        turn = jnp.stack([jnp.cos(self.rate * t), 0 * t, 0 * t, jnp.sin(self.rate * t)])
        return Pose.from_quaternion(turn, jnp.stack([t, self.rate * t**2, 1 + t]))


def _constrained(*constraints, stabilisation=None) -> Case:
    model = random_model(5, 8, kinds=("revolute", "prismatic"), branching=0.6)
    q, v, _, _ = random_state(model, 6)
    stabilisation = jc.Baumgarte(12.0) if stabilisation is None else stabilisation
    motion = jc.ConstrainedMotion(constraints, stabilisation)
    # of some frames only the origin or only the axes matter
    unused = frozenset({"rotation", "translation"})
    return Case(jd.System(model, motion=motion), q, 0.3 * v, steps=2, without_effect=unused)


def _end(link, *at):
    return jc.End(link, at, (0.9, 0.1, -0.2, 0.3))


_BASE = jc.End("l1", (0.1, 0.2, 0.0), (0.8, 0.1, 0.2, -0.1))


def point_rod_and_bowl() -> Case:
    gear = jc.JointCoupling("gear", "l1_joint", "l0_joint", (0.1, 0.5, -0.2))
    return _constrained(
        jc.PointClosure("point", _end("l1", 0.1, 0.2, 0.3), _end("l7", 0.3, 0.1, 0.0)),
        jc.Distance("rod", _end("l0", 0.1, 0.2, 0.3), _end("l4", 0.3, 0.1, 0.0), 0.7),
        jc.OnSurface("bowl", _end("l6", 0.1, 0.0, 0.2), Bowl(jnp.array(0.3)), _BASE),
        gear,
        stabilisation=jc.GearGuptaLeimkuhler(8.0),
    )


def weld() -> Case:
    return _constrained(jc.WeldClosure("weld", _end("l2", 0.1, 0.2, 0.3), _end("l6", 0.3, 0.1, 0.0)))


def revolute_closure() -> Case:
    chain = jc.LinearCoupling("chain", "l2_joint", ("l0_joint", "l1_joint"), (0.5, -0.3), 0.1)
    return _constrained(jc.RevoluteClosure("r", _end("l3", 0.1, 0.2, 0.3), _end("l5", 0.3, 0.1, 0.0)), chain)


def cylindrical_closure() -> Case:
    driven = jc.PrescribedCoordinate("driven", "l2_joint", Wave(jnp.array(0.7), jnp.array(0.3)))
    return _constrained(jc.CylindricalClosure("c", _end("world", 0.1, 0.2, 0.3), _end("l5", 0.3, 0.1, 0.0)), driven)


def prismatic_closure() -> Case:
    return _constrained(jc.PrismaticClosure("p", _end("l4", 0.1, 0.2, 0.3), _end("world", 0.3, 0.1, 0.0)))


def planar_closure_and_skate() -> Case:
    return _constrained(
        jc.PlanarClosure("planar", _end("l0", 0.1, 0.2, 0.3), _end("l7", 0.3, 0.1, 0.0)),
        jc.KnifeEdge("skate", _end("l5", 0.1, 0.0, 0.0), _BASE),
    )


def prescribed_frame() -> Case:
    return _constrained(jc.PrescribedFrame("carried", _end("l3", 0.0, 0.1, 0.0), Carried(jnp.array(0.8)), _BASE))


def functions() -> Case:
    size = jnp.linspace(0.4, 0.8, 8)
    return _constrained(
        jc.Holonomic("own", Tilt(jnp.array(0.6))),
        jc.Pfaffian("given", Rows(size, True), Rows(size, False)),
    )


def rolling_ball() -> Case:
    ball, normal = _end("l2", 0.1, 0.0, 0.0), (0.1, 0.2, 1.0)
    height = jc.BallOnPlane("height", ball, 0.3, normal, _BASE)
    return _constrained(jc.RollingBall("ball", ball, 0.3, normal, _BASE), height)


def rolling_disc() -> Case:
    disc = _end("l7", 0.1, 0.0, 0.0)
    rim = jc.DiscOnPlane("rim", disc, 0.3, (0.1, 0.2, 1.0), _BASE)
    return _constrained(jc.RollingDisc("disc", disc, 0.3, (0.1, 0.2, 1.0), _BASE), rim)


def projected() -> Case:
    """Projection after each step."""
    rod = jc.Distance("rod", jc.End("lower", (0.0, 0.0, -1.0)), jc.End("world", (1.0, 0.0, -1.0)), 1.2)
    system, unused = jd.System(ARM, motion=jc.ConstrainedMotion(rod)), frozenset({"rotation"})
    return Case(system, [0.4, -0.7], [0.8, -0.5], without_effect=unused)


CONSTRAINT_CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        point_rod_and_bowl, weld, revolute_closure, cylindrical_closure, prismatic_closure,
        planar_closure_and_skate, prescribed_frame, functions, rolling_ball, rolling_disc, projected,
    )
}  # fmt: skip
