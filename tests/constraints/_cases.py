"""Robots with closed loops, and a set with every type of constraint."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.spatial import Pose

ABOUT_Y = (np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0)  # turns z to y
UNIT = (1.0, 0.0, 0.0, 0.0)


def four_bar(coupler=1.3):
    """Three bars on two bearings, an open loop; `coupler`, the length of the second bar, may be traced."""
    y = (0.0, 1.0, 0.0)
    bar = lambda length: jd.spatial.rod(length, mass=1.0).moved((0, 0, length / 2))
    b = jd.ModelBuilder()
    b.add_link("crank", "world", jd.joints.Revolute(y), bar(0.5))
    b.add_link("coupler", "crank", jd.joints.Revolute(y), bar(coupler), translation=(0, 0, 0.5))
    b.add_link("rocker", "world", jd.joints.Revolute(y), bar(1.0), translation=(1.2, 0, 0))
    return b.build()


def four_bar_closure(coupler=1.3, name="loop"):
    return jc.RevoluteClosure(
        name, jc.End("coupler", jnp.array([0, 0, 1.0]) * coupler, ABOUT_Y), jc.End("rocker", (0, 0, 1.0), ABOUT_Y)
    )


@jax.jit
def assemble_four_bar(length, q, v):
    """The assembled four-bar linkage, compiled once for all tests."""
    return jc.assemble(four_bar(length), (four_bar_closure(length),), q, v)


def every_type():
    """One constraint of each type on a robot with links l0 to l7 and joints of all types."""
    e = lambda link, *at: jc.End(link, at, (0.9, 0.1, -0.2, 0.3))
    rotation = lambda t: jnp.stack([jnp.cos(t), 0 * t, jnp.sin(t), 0 * t])
    motion = lambda t: Pose.from_quaternion(rotation(t), jnp.stack([t, t**2, 1 + t]))
    rows = lambda q, t: jnp.outer(jnp.ones(2), jnp.sin(q[0] * jnp.arange(NV) + t))
    return (
        jc.PointClosure("point", e("l1", 0.1, 0.2, 0.3), e("l7", 0.3, 0.1, 0.0)),
        jc.WeldClosure("weld", e("l2", 0.1, 0.2, 0.3), e("l6", 0.3, 0.1, 0.0)),
        jc.RevoluteClosure("revolute", e("l3", 0.1, 0.2, 0.3), e("l5", 0.3, 0.1, 0.0)),
        jc.CylindricalClosure("cylindrical", e("world", 0.1, 0.2, 0.3), e("l5", 0.3, 0.1, 0.0)),
        jc.PrismaticClosure("prismatic", e("l4", 0.1, 0.2, 0.3), e("world", 0.3, 0.1, 0.0)),
        jc.PlanarClosure("planar", e("l0", 0.1, 0.2, 0.3), e("l7", 0.3, 0.1, 0.0)),
        jc.Distance("rod", e("l0", 0.1, 0.2, 0.3), e("l4", 0.3, 0.1, 0.0), 0.7),
        jc.OnSurface("bowl", e("l6", 0.1, 0.0, 0.2), lambda p: p[2] - p[0] ** 2 - jnp.sin(p[1]), "l1"),
        jc.PrescribedFrame("carried", e("l3", 0.0, 0.1, 0.0), motion),
        jc.Holonomic("own", lambda x: jnp.sin(x.q[0]) * x.pose("l4").translation[:2] + x.t),
        jc.Pfaffian("given", rows, lambda q, t: q[:2] * t),
        jc.RollingBall("ball", e("l2", 0.1, 0.0, 0.0), 0.3, (0.1, 0.2, 1.0)),
        jc.RollingDisc("disc", e("l7", 0.1, 0.0, 0.0), 0.3),
        jc.DiscOnPlane("rim", e("l7", 0.1, 0.0, 0.0), 0.3),
        jc.BallOnPlane("height", e("l2", 0.1, 0.0, 0.0), 0.3),
        jc.KnifeEdge("skate", e("l5", 0.1, 0.0, 0.0)),
    )  # fmt: skip


NV = 18
