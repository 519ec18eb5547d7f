"""Robots shared by the tests of this folder."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn import dynamics
from jaxdyn.dynamics import rnea
from jaxdyn.joints import Cylindrical, Fixed, Free, Helical, Planar, Prismatic, Revolute, Spherical, Universal
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import box, cylinder


def body(k: float):
    """A solid without symmetries, with its centre of mass away from the link origin."""
    return box((0.1 + 0.02 * k, 0.2, 0.3), mass=1.0 + 0.1 * k).moved((0.05 * k, 0.1, -0.1))


def pendulum(lengths=(0.6, 0.4), density=2700.0) -> Model:
    """A double pendulum whose lengths and density may be traced."""
    b = ModelBuilder()
    for k, (length, parent) in enumerate(zip(lengths, ("world", "link0"), strict=True)):
        solid = cylinder(0.03, length, density=density).moved(jnp.stack([0.0, 0.0, -length / 2]))
        at = (0.0, 0.0, 0.0) if k == 0 else jnp.stack([0.0, 0.0, -lengths[0]])
        b.add_link(f"link{k}", parent, Revolute((0, 1, 0)), solid, translation=at)
    b.add_frame("tip", "link1", translation=jnp.stack([0.0, 0.0, -lengths[1]]))
    return b.build()


def branched_robot(base=None) -> Model:
    """Two branches of several joint types on a base, with a fixed link and a mimic joint."""
    place = lambda k: {"translation": (0.1 * k, -0.2, 0.3), "rpy": (0.2 * k, 0.3, -0.1 * k)}
    b = ModelBuilder()
    b.add_link("base", "world", Free() if base is None else base, body(3), joint_name="root")
    b.add_link("a", "base", Revolute((0, 1, 0.3)), body(1), **place(1), lower=-1.0, upper=2.0, armature=0.1)
    b.add_link("b", "a", Helical((1, 1, 0.3), 0.2), body(2), **place(2), damping=0.3, effort=7.0)
    b.add_link("plate", "b", Fixed(), body(4), **place(3))
    b.add_link("c", "plate", Cylindrical((0, 0.2, 1)), body(0), **place(4))
    b.add_link("d", "a", Prismatic((1, 0, 0)), body(1), **place(-1), stiffness=3.0, rest=0.1)
    b.add_link("e", "base", Spherical(), body(2), **place(-2))
    b.add_link("f", "e", Prismatic((0, 1, 0)), body(1), **place(1))
    b.add_mimic("f_joint", "d_joint", ratio=-0.5, offset=0.2)
    b.add_frame("tool", "c", translation=(0.1, 0.2, 0.3), rpy=(0.1, 0.2, 0.3))
    b.add_frame("camera", "base", translation=(0.0, 0.0, 0.5))
    return b.build()


def planar_arm() -> Model:
    b = ModelBuilder()
    b.add_link("cart", "world", Planar(), body(1))
    b.add_link("arm", "cart", Universal((1, 0, 0), (0, 1, 0)), body(2), translation=(0, 0, 0.2))
    return b.build()


def inverse_dynamics(model: Model, q, v, a):
    return rnea(model, q, v, a)


mass_matrix = jax.jit(dynamics.mass_matrix)


@jax.jit
def efforts(model: Model, q, v, a):
    return rnea(model, q, v, a)


def neutral(model: Model):
    """The neutral configuration."""
    q = np.zeros(model.nq)
    for name in model.joint_names:
        view = model.joint(name)
        q[view.q] = view.joint.neutral(jnp.float64)
    return jnp.asarray(q)


def random_state(model: Model, seed=0):
    """Configuration, velocity and acceleration."""
    rng = np.random.default_rng(seed)
    q = np.zeros(model.nq)
    for i, name in enumerate(model.joint_names):
        view = model.joint(name)
        q[view.q] = view.joint.random(jax.random.key(100 * seed + i), jnp.float64)
    return jnp.asarray(q), jnp.asarray(rng.normal(size=model.nv)), jnp.asarray(rng.normal(size=model.nv))


def carry_over(old: Model, new: Model, x, kind: str):
    """Coordinates of `old` in the order of `new`, for joints of the same name; zero elsewhere."""
    out = np.zeros(new.nq if kind == "q" else new.nv)
    for name in set(old.joint_names) & set(new.joint_names):
        source, target = getattr(old.joint(name), kind), getattr(new.joint(name), kind)
        if (source.stop - source.start) == (target.stop - target.start):
            out[target] = x[source]
    return jnp.asarray(out)
