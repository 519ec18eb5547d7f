"""Robots that these tests share, since compilation dominates their time, and compiled functions by name."""

import functools as ft

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.joints import Revolute
from jaxdyn.model import Model, ModelBuilder
from tests.oracles import (
    ALL_KINDS,
    MUJOCO_KINDS,
    PINOCCHIO_KINDS,
    random_inertia,
    random_joint,
    random_model,
    random_rotation,
    random_state,
)

TOLERANCE = 1e-10
CONSTANT = tuple(k for k in PINOCCHIO_KINDS if k not in ("universal", "spherical_zyx"))


def _one_of_each(kinds) -> Model:
    """A branching robot with one joint of each of these types."""
    rng = np.random.default_rng(11)
    builder = ModelBuilder(gravity=(1.0, -2.0, -9.0))
    for i, kind in enumerate(kinds):
        builder.add_link(
            f"l{i}",
            "world" if i == 0 else f"l{i - 1 if i % 3 else max(0, i - 3)}",
            random_joint(rng, kind),
            random_inertia(rng),
            translation=0.3 * rng.normal(size=3),
            rotation=random_rotation(rng),
            armature=0.05,
            damping=rng.uniform(0.1, 0.5),
            friction=rng.uniform(0.1, 0.3),
            stiffness=rng.uniform(0.5, 1.5),
        )
    builder.add_frame("f0", "l1", translation=(0.1, -0.2, 0.3), rotation=random_rotation(rng))
    return builder.build()


def _every_kind() -> Model:
    others = tuple(k for k in ALL_KINDS if k != "free")
    return _one_of_each(("free", *others[:5], "fixed", *others[5:]))


def _mimicking_prismatic() -> Model:
    """A prismatic joint that mimics a revolute joint on another branch."""
    rng = np.random.default_rng(12)
    builder = ModelBuilder()
    for name, parent, kind in (("a", "world", "revolute"), ("b", "a", "revolute"), ("c", "a", "prismatic")):
        builder.add_link(
            name,
            parent,
            random_joint(rng, kind),
            random_inertia(rng),
            translation=0.3 * rng.normal(size=3),
            rotation=random_rotation(rng),
            **({} if name == "c" else {"armature": 0.05, "damping": 0.2, "friction": 0.1, "stiffness": 0.7}),
        )
    return builder.add_mimic("c_joint", "b_joint", ratio=-0.7, offset=0.2).add_frame("f0", "c").build()


def chain(n: int, *, spread: float = 0.1) -> Model:
    """A serial chain of n revolute joints with axes alternating between z and y."""
    builder = ModelBuilder()
    rng = np.random.default_rng(0)
    body = random_inertia(rng)
    for i in range(n):
        axis = (0.0, 0.0, 1.0) if i % 2 else (0.0, 1.0, 0.0)
        parent = f"l{i - 1}" if i else "world"
        builder.add_link(f"l{i}", parent, Revolute(axis), body, translation=(spread, 0, 0), armature=0.1)
    return builder.build()


_MODELS = {
    "single": lambda: random_model(1, 1, kinds=("revolute",)),
    "arm": lambda: random_model(2, 7, kinds=("revolute",), branching=0),
    # on a massive link that is part of the world
    "based": lambda: random_model(2, 3, kinds=("revolute", "prismatic"), based=True),
    "tree": lambda: random_model(3, 14, floating=True, fixed_fraction=0.2),
    "bare": lambda: random_model(4, 9),
    "mujoco": lambda: random_model(5, 10, kinds=MUJOCO_KINDS, floating=True, fixed_fraction=0.15),
    "every": _every_kind,
    "few": lambda: _one_of_each(("free", "revolute", "spherical", "universal", "fixed")),
    # what compiles fast enough for the default run; most tests of it share this robot, and so its programs
    "pair": lambda: _one_of_each(("free", "fixed", "revolute")),
    "rare": lambda: _one_of_each(("planar", "spherical_zyx", "custom")),
    # Pinocchio's time derivatives leave out the rate of a joint's own subspace, so for them without the joints
    # (universal, z-y-x) that have one: its Coriolis matrix times v is not its bias there
    "constant": lambda: random_model(6, 8, floating=True, fixed_fraction=0.15, kinds=CONSTANT),
    "geared": _mimicking_prismatic,
}


@ft.cache
def model(name: str) -> Model:
    """One of the shared robots."""
    return _MODELS[name]()


@ft.cache
def state(name: str, seed: int = 0):
    """A state `(q, v, a, external)` of a shared robot."""
    return random_state(model(name), seed)


#: compiling is nearly all of these tests' time; what users compile with is tested on the three main functions
QUICK = {"xla_backend_optimization_level": 0}
MAIN = ("rnea", "mass_matrix", "forward_dynamics")


@ft.cache
def jitted(name: str):
    """A public function of jaxdyn under `jit`."""
    return jax.jit(getattr(jd, name), compiler_options=None if name in MAIN else QUICK)


def call(name: str, *args):
    """The result of a public function of jaxdyn, compiled once."""
    return jitted(name)(*args)


@jax.jit
def _integrate(model, q, dv):
    return jd.integrate(model, q, dv)


def integrate_configuration(model, q, dv):
    """`integrate(model, q, dv)`, compiled."""
    return _integrate(model, q, jnp.asarray(dv, q.dtype))


def derivative_along(f):
    """`d/ds f(integrate(q, s u), v + s a)` at zero, as a jitted function of `(model, q, u, v, a)`."""

    @ft.partial(jax.jit, compiler_options=QUICK)
    def rate(model, q, u, v, a):
        g = lambda s: f(model, jd.integrate(model, q, s * u), v + s * a)
        return jax.jvp(g, (jnp.zeros((), q.dtype),), (jnp.ones((), q.dtype),))[1]

    return rate


def without_armature(m: Model) -> Model:
    """The robot without armatures."""
    return eqx.tree_at(lambda m: m.properties.armature, m, jnp.zeros_like(m.properties.armature))
