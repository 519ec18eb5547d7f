"""Robots with beams, whose links have the inertia of their beams or more."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.beams import Beam, Material, Rectangle, Round, Tube
from jaxdyn.dynamics import joint_reactions
from jaxdyn.joints import Fixed, Prismatic, Revolute
from jaxdyn.loads import deflections, internal_loads
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia, Pose, box, rpy_to_matrix

DOWN = Pose(rpy_to_matrix(np.array([0.0, np.pi / 2, 0.0])), np.zeros(3))
ALUMINIUM = Material.aluminium()
TILTED = Pose(rpy_to_matrix(np.array([0.3, -0.5, 0.8])), np.array([0.02, -0.01, 0.03]))


def thin_rod(mass: float, length: float) -> tuple[Model, dict[str, Beam]]:
    """A hinged rod that hangs along -z, so thin that the rotary inertia of its sections vanishes."""
    radius = 1e-6
    material = Material(mass / (np.pi * radius**2 * length), 70e9, 27e9)
    beam = Beam(Round(radius), material, length, placement=DOWN)
    return hinge({"rod": beam}), {"rod": beam}


def hinge(beams: dict[str, Beam]) -> Model:
    """One link with the inertia of its beam on a hinge about y."""
    ((name, beam),) = beams.items()
    return ModelBuilder().add_link(name, "world", Revolute((0.0, 1.0, 0.0)), beam.inertia()).build()


def cantilever(beam: Beam) -> Model:
    """A beam along x that is clamped to the world, with its tip as a frame."""
    builder = ModelBuilder().add_link("arm", "world", Fixed(), beam.inertia())
    return builder.add_frame("tip", "arm", translation=(beam.length, 0.0, 0.0)).build()


@functools.cache
def spatial_arm() -> tuple[Model, dict[str, Beam | tuple[Beam, ...]]]:
    """Three moving links with a fixed motor and tool: a bent link of two beams, a tapered and a rectangular one."""
    first = Beam(Tube(0.04, 0.03), ALUMINIUM, 0.3, placement=TILTED)
    corner = TILTED.apply(jnp.array([0.3, 0.0, 0.0]))
    second = Beam(Tube(0.03, 0.026), ALUMINIUM, 0.25, placement=Pose(rpy_to_matrix(np.array([0.0, 0.9, 0.2])), corner))
    cone = Beam(Tube(0.03, 0.02), ALUMINIUM, 0.4, Tube(0.02, 0.015), TILTED)
    bar = Beam(Rectangle(0.02, 0.05), ALUMINIUM, 0.35, placement=DOWN)
    end = second.placement.apply(jnp.array([0.25, 0.0, 0.0]))
    builder = ModelBuilder()
    builder.add_link("bent", "world", Revolute((0.1, 0.3, 1.0)), first.inertia() + second.inertia())
    builder.add_link("cone", "bent", Revolute((0.0, 1.0, 0.4)), cone.inertia(), translation=end)
    builder.add_link("motor", "cone", Fixed(), box((0.05, 0.06, 0.07), mass=1.3), translation=(0.15, 0.05, 0.2))
    gripper = Inertia(0.4, (0.01, 0.02, -0.3), np.diag([2e-3, 3e-3, 2.5e-3]))
    tip = cone.placement.apply(jnp.array([0.4, 0.0, 0.0]))
    builder.add_link("bar", "cone", Prismatic((0.2, 0.0, 1.0)), bar.inertia() + gripper, translation=tip)
    builder.add_frame("tool", "bar", translation=(0.0, 0.01, -0.36))
    return builder.build(), {"bent": (first, second), "cone": cone, "bar": bar}


def states(model: Model, count: int, seed: int = 0):
    """Random configurations, velocities, accelerations and external wrenches, with a leading axis."""
    rng = np.random.default_rng(seed)
    q, v, a = rng.normal(size=(3, count, model.nv))
    return tuple(jnp.asarray(x) for x in (q, v, a, rng.normal(size=(count, model.num_links, 6))))


@functools.partial(jax.jit, static_argnames="sections")
def loads_at(model, beams, q, v, a, external=None, sections=9):
    """`internal_loads`, compiled once for each robot."""
    return internal_loads(model, beams, q, v, a, external, sections=sections)


@functools.partial(jax.jit, static_argnames=("sections", "has_shear"))
def deflections_at(model, beams, q, v, a, external=None, sections=9, has_shear=False):
    """`deflections`, compiled once for each robot."""
    return deflections(model, beams, q, v, a, external, sections=sections, has_shear=has_shear)


reactions_at = jax.jit(joint_reactions)
