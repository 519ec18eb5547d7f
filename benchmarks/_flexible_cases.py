"""Reference problems of flexible beams, as functions of the number of sublinks.

Sources: K. E. Bisshopp and D. C. Drucker, Quarterly of Applied Mathematics 3 (1945) 272-275 (elastica); K. J. Bathe and
S. Bolourchi, International Journal for Numerical Methods in Engineering 14 (1979) 961-986 (bend of 45 degrees);
A. D. Wright et al., J. Appl. Mech. 49 (1982) 197-202 (rotating cantilever); J. C. Simo and L. Vu-Quoc, Comput. Methods
Appl. Mech. Eng. 66 (1988) 125-161 (spin-up); T. R. Kane, R. R. Ryan and A. K. Banerjee, J. Guid. Control Dyn. 10 (1987)
139-151 (spin-up).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.beams import Beam, Material, Profile, SectionProperties
from jaxdyn.constraints import ConstrainedMotion, PrescribedCoordinate
from jaxdyn.flexible import Strains, add_flexible_link
from jaxdyn.joints import Revolute

#: rotary inertia of sections, which the references neglect, is divided by this number
SLENDER = 1e14


def slender_beam(length, stiffness, mass) -> Beam:
    """A beam with the bending stiffness E I (N m^2) and the mass per length (kg/m), of negligible rotary inertia."""
    second = 1 / SLENDER
    return Beam(
        Profile(SectionProperties(1.0, second, second, second)),
        Material(mass, stiffness / second, stiffness / second),
        length,
    )


def arm(beam: Beam, sublinks: int, *, joint=None, strains=None, gravity=(0.0, 0.0, 0.0)):
    """A flexible arm along x, clamped or on a joint: the model and its part."""
    builder = jd.ModelBuilder(gravity=gravity)
    part = add_flexible_link(
        builder, "arm", "world", joint, beam=beam, sublinks=sublinks, strains=strains or Strains.planar()
    )
    return builder.build(), part


@eqx.filter_jit
def _cantilever(model, part):
    mounted = part.mount(model)
    return jd.modes(mounted, jnp.zeros(mounted.nq), gravity=False).frequencies[:3]


#: frequencies of a cantilever in units of sqrt(E I / rho A L^4)
CANTILEVER = np.array([3.516015268500, 22.034491564667, 61.697214415592])


def cantilever_frequencies(sublinks: int):
    """The first three frequencies of a cantilever."""
    return np.asarray(_cantilever(*arm(slender_beam(1.0, 1.0, 1.0), sublinks)))


@eqx.filter_jit
def _dead_load(model, part, force):
    mounted = part.mount(model)
    work = lambda model, q: -force @ jd.frame_pose(model, q, part.tip).translation
    rest = jd.static_equilibrium(mounted, jnp.zeros(mounted.nq), energies=(work,), gravity=False)
    return rest, jd.frame_pose(mounted, rest.q, part.tip)


#: shortening, deflection and angle of the tip by P L^2 / E I
ELASTICA = {
    1.0: (0.056433236283377, 0.30172077379981, 0.46135194971188),
    2.0: (0.16064172082517, 0.49345748039671, 0.78174983155654),
    10.0: (0.55499559775375, 0.8106090248803, 1.4302855388039),
}


def elastica(sublinks: int, load: float):
    """Shortening, deflection and angle of a cantilever under a dead transverse force at its tip."""
    rest, tip = _dead_load(*arm(slender_beam(1.0, 1.0, 1.0), sublinks), jnp.array([0.0, load, 0.0]))
    assert rest.converged
    return np.array([1 - tip.translation[0], tip.translation[1], jnp.sum(rest.q)])


def roll_up(sublinks: int, turns: float = 1.0):
    """Tip of a cantilever of length 10 under the moment `turns 2 pi E I / L`."""
    model, part = arm(slender_beam(10.0, 1.0, 1.0), sublinks)
    mounted = part.mount(model)
    moment = jnp.full(mounted.nv, turns * 2 * jnp.pi / 10)
    rest = eqx.filter_jit(jd.static_equilibrium)(mounted, jnp.zeros(mounted.nq), effort=moment, gravity=False)
    assert rest.converged
    return np.asarray(jd.frame_pose(mounted, rest.q, part.tip).translation[:2])


def roll_up_exact(turns: float = 1.0):
    """The circular arc."""
    angle = turns * 2 * np.pi
    return 10 / angle * np.array([np.sin(angle), 1 - np.cos(angle)])


#: displacement of the tip of the bend under 600 lb, in: 16 geometrically exact elements (GXBeam)
BEND_ELEMENTS = np.array([-23.545, -13.577, 53.458])
#: the limit of this method, extrapolated from 8 and 16 sublinks
BEND = np.array([-23.561, -13.604, 53.476])


def bend(sublinks: int, strains: Strains | None = None):
    """Displacement of the tip of a circular cantilever of 45 degrees under a force out of its plane."""
    radius, step = 100.0, np.pi / 4 / sublinks
    chord = 2 * radius * np.sin(step / 2)
    numbers = SectionProperties(1.0, 1 / 12, 1 / 12, 1 / 6)
    beam = Beam(Profile(numbers, (5 / 6, 5 / 6)), Material(1.0, 1e7, 5e6), chord)
    builder, parts, parent = jd.ModelBuilder(gravity=(0.0, 0.0, 0.0)), [], "world"
    for k in range(sublinks):
        turn = [0.0, 0.0, step if k else step / 2]
        part = add_flexible_link(
            builder, f"part{k}", parent, None, beam=beam, sublinks=1, strains=strains or Strains.all(), rpy=turn
        )
        parts.append(part)
        parent = part.tip
    model = builder.build()

    @jax.jit
    def solve():
        mounted = jd.System(model, tuple(parts)).mounted_model
        tip = lambda model, q: jd.frame_pose(model, q, parent).translation
        work = lambda model, q: -600.0 * tip(model, q)[2]
        rest = jd.static_equilibrium(mounted, jnp.zeros(mounted.nq), energies=(work,), gravity=False)
        return rest, tip(mounted, rest.q) - tip(mounted, jnp.zeros(mounted.nq))

    rest, moved = solve()
    assert rest.converged, rest
    return np.asarray(moved)  # the arc begins along x and bends towards y


#: frequencies of a rotating cantilever by the speed, in units of sqrt(E I / rho A L^4): three flap modes
FLAP = {
    0.0: (3.51601527, 22.03449156, 61.69721441),
    3.0: (4.79727853, 23.32026367, 62.98496748),
    6.0: (7.36037302, 26.80908168, 66.68391438),
    12.0: (13.17015049, 37.60311233, 79.61447849),
}


@eqx.filter_jit
def _rotating(model, part, speed):
    mounted = part.mount(model)
    still = jnp.zeros(mounted.nv)
    turning = still.at[0].set(speed)
    stiffness = jax.jacfwd(lambda q: jd.rnea(mounted, q, turning, still) - jd.passive_forces(mounted, q, still))(still)
    mass = jd.mass_matrix(mounted, still)
    places = part.coordinates(mounted)
    found = []
    for k in range(2):  # lag about z, flap about y
        rows = np.ix_(places[:, k], places[:, k])
        lower = jnp.linalg.cholesky(mass[rows])
        inverse = jnp.linalg.inv(lower)
        found.append(jnp.sqrt(jnp.linalg.eigvalsh(inverse @ stiffness[rows] @ inverse.T)[:3]))
    return jnp.stack(found)


def rotating_frequencies(sublinks: int, speed: float):
    """Frequencies of lag and of flap of a cantilever on the axis of rotation."""
    strains = Strains(torsion=False)
    model, part = arm(slender_beam(1.0, 1.0, 1.0), sublinks, joint=Revolute([0, 0, 1]), strains=strains)
    return np.asarray(_rotating(model, part, speed))


class SpinUp(eqx.Module):
    """Angle of the hub, which reaches the speed w after the time T."""

    time: float
    speed: float

    def __call__(self, t):
        s, k = jnp.minimum(t, self.time), 2 * jnp.pi / self.time
        ramp = self.speed / self.time * (s * s / 2 + (jnp.cos(k * s) - 1) / k**2)
        return ramp + self.speed * (t - s)


#: length, E I, rho A; least transverse deflection in the turning frame and those at 5, 7.5 and 10 s, converged
SPIN_UPS = {
    "Simo and Vu-Quoc": ((10.0, 1.4e4, 1.2), (-0.573751, -0.468436, -0.558986, -0.362671)),
    "Kane, Ryan, Banerjee": (
        (8.0, 6.8952e10 * 8.2181e-9, 2766.67 * 7.2968e-5),
        (-0.75060, -0.62320, -0.70705, -0.43730),
    ),
}


def spin_up(sublinks: int, case: str, dt: float, solver=None):
    """Least deflection, and those at 5, 7.5 and 10 s, m."""
    model, part = arm(slender_beam(*SPIN_UPS[case][0]), sublinks, joint=Revolute([0, 0, 1]))
    drive = PrescribedCoordinate("drive", "arm_joint", SpinUp(15.0, 6.0))
    motion: Any = ConstrainedMotion
    system = jd.System(model, (part,), motion(drive))
    ts = jnp.linspace(0.0, 10.0, 1001)
    run = jd.simulate(system, jnp.zeros(model.nq), jnp.zeros(model.nv), ts, dt=dt, solver=solver)
    mounted = part.mount(model)

    def deflection(q):
        tip = jd.frame_pose(mounted, q, part.tip).translation
        return jnp.cos(q[0]) * tip[1] - jnp.sin(q[0]) * tip[0]

    y = np.asarray(jax.vmap(deflection)(run.q))
    k = int(y.argmin())
    a, b, c = y[k - 1 : k + 2]
    return np.array([b - (a - c) ** 2 / (8 * (a - 2 * b + c)), y[500], y[750], y[1000]])
