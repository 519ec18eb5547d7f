"""Motions of flexible mechanisms: flying spaghetti and the flexible slider-crank.

Sources: J. C. Simo and L. Vu-Quoc, J. Appl. Mech. 53 (1986) 849-863 (flying spaghetti); the slider-crank of the library
of multibody benchmark problems of IFToMM.
"""

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.beams import Beam, Material, Profile, Round, SectionProperties
from jaxdyn.constraints import ConstrainedMotion, OnSurface, PrescribedCoordinate
from jaxdyn.flexible import Lump, Strains, add_flexible_link
from jaxdyn.joints import Prismatic, Revolute
from jaxdyn.simulation import Effort
from jaxdyn.spatial import Inertia, box, point_mass


class Flight(NamedTuple):
    """Linear momentum, angular momentum about the origin, and energy along a free flight."""

    momentum: np.ndarray
    angular: np.ndarray
    energy: np.ndarray
    #: from the first to the last point of the beam, m
    span: np.ndarray


def spaghetti(sublinks: int, until: float, *, stiffness: float = 100.0, dt: float = 2e-3, solver=None) -> Flight:
    """A free beam of 10 m under a force of 8 N and a moment of -80 N m at one end for 2.5 s, then in free flight."""
    area, second = 1.0, stiffness / 1e4
    numbers = Profile(SectionProperties(area, second, second, 2 * second))
    beam = Beam(numbers, Material(1.0, 1e4, 1e4), 10.0)
    bars = np.diff(np.concatenate([[0.0], (np.arange(sublinks) + 0.5) / sublinks, [1.0]])) * 10.0
    middles = np.concatenate([[0.0], np.arange(1, sublinks) / sublinks, [1.0]])
    # the rotary inertia of the reference, 10 kg m, exceeds that of the section
    turning = [Inertia(0.0, jnp.zeros(3), (10.0 - second) * bar * jnp.diag(jnp.array([0.0, 0.0, 1.0]))) for bar in bars]
    lumps = tuple(Lump(body, float(s)) for body, s in zip(turning, middles, strict=True))
    builder = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_link("x", "world", Prismatic([1, 0, 0]))
    builder.add_link("y", "x", Prismatic([0, 1, 0]))
    part = add_flexible_link(
        builder,
        "beam",
        "y",
        Revolute([0, 0, 1]),
        beam=beam,
        sublinks=sublinks,
        strains=Strains.planar(extension=True, shear=True),
        lumps=lumps,
    )
    model = builder.build()
    push = Effort(jnp.zeros(model.nv).at[jnp.array([0, 2])].set(jnp.array([8.0, -80.0])))
    solver = diffrax.Tsit5() if solver is None else solver
    q0 = jnp.zeros(model.nq).at[:3].set(jnp.array([6.0, 0.0, np.pi - np.arctan2(4.0, 3.0)]))
    run = lambda parts, q, v, ts: jd.simulate(jd.System(model, parts), q, v, ts, dt=dt, solver=solver)
    first = run((part, push), q0, jnp.zeros(model.nv), jnp.array([0.0, 2.5]))
    free = run((part,), first.q[-1], first.v[-1], jnp.linspace(0.0, until - 2.5, 11))
    mounted = part.mount(model)

    @jax.jit
    @jax.vmap
    def quantities(q, v):
        total = jd.momentum(mounted, q, v)  # about the centre of mass, in world axes
        energy = jd.kinetic_energy(mounted, q, v) + part.strain_energy(mounted, q)
        span = jd.frame_pose(mounted, q, part.tip).translation - jd.frame_pose(mounted, q, "beam").translation
        return total[3:], total[2], energy, span

    return Flight(*map(np.asarray, quantities(free.q, free.v)))


class Crank(eqx.Module):
    """Angle of a crank of constant speed."""

    speed: float

    def __call__(self, t):
        return self.speed * t


def height(point):
    """Height of the slider above its rail."""
    return point[1]


def slider_crank(sublinks: int, *, revolutions: float = 2.0, dt: float = 1e-5, solver=None):
    """Times (s) and deflections of the middle of the rod from the chord (m) at 150 rad/s."""
    speed, crank, rod = 150.0, 0.15, 0.3
    beam = Beam(Round(0.003), Material.isotropic(7870.0, 2e11, 0.3), rod)
    builder = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    body = box([crank, 0.01, 0.01], mass=0.1).moved([crank / 2, 0.0, 0.0])
    builder.add_link("crank", "world", Revolute([0, 0, 1]), body)
    part = add_flexible_link(
        builder,
        "rod",
        "crank",
        Revolute([0, 0, 1]),
        beam=beam,
        sublinks=sublinks,
        strains=Strains.planar(),
        stations={"middle": 0.5},
        translation=[crank, 0.0, 0.0],
    )
    builder.add_link("slider", part.tip, None, point_mass(float(beam.inertia().mass) / 2))
    model = builder.build()
    motion: Any = ConstrainedMotion
    drive = PrescribedCoordinate("drive", "crank_joint", Crank(speed))
    system = jd.System(model, (part,), motion((drive, OnSurface("rail", "slider", height))))
    q0, v0 = jnp.zeros(model.nq), jnp.zeros(model.nv).at[0].set(speed).at[1].set(-1.5 * speed)
    ts = jnp.linspace(0.0, revolutions * 2 * np.pi / speed, 401)
    run = jd.simulate(system, q0, v0, ts, dt=dt, solver=diffrax.Tsit5() if solver is None else solver)
    mounted = part.mount(model)

    @jax.jit
    @jax.vmap
    def deflection(q):
        start, middle, end = (jd.frame_pose(mounted, q, name).translation for name in ("rod", "middle", "slider"))
        along = (end - start) / jnp.linalg.norm(end - start)
        return jnp.cross(along, middle - start)[2]

    return np.asarray(run.t), np.asarray(deflection(run.q)), run
