"""Quasi-static deflections of stiff robots: of their beams, links and frames."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, format_names
from jaxdyn._types import Array, Float, Scalar, Vec6
from jaxdyn.loads._beams import Beams, LinkBeams, link_beams, map_links, row_names
from jaxdyn.loads._internal_loads import check_sections, check_single, join_rows
from jaxdyn.loads._link_forces import RobotForces, robot_forces
from jaxdyn.loads._sections import LinkSections, attach_forces, axis_point
from jaxdyn.model import Model
from jaxdyn.recursion import ancestor_mask
from jaxdyn.simulation import Trajectory

#: Gauss-Legendre points on 0..1 between two sections: exact for the cubic moments of uniform beams
_POINTS, _WEIGHTS = (np.polynomial.legendre.leggauss(4)[0] + 1) / 2, np.polynomial.legendre.leggauss(4)[1] / 2


class Deflections(eqx.Module):
    """Small displacements by the deformation of beams, in world axes.

    Along a trajectory all arrays have a leading axis of times.
    """

    #: link of each beam
    links: tuple[str, ...] = eqx.field(static=True)
    #: names of all links and frames, which `origins`, `rotation` and `translation` describe
    names: tuple[str, ...] = eqx.field(static=True)
    #: distance of the sections from the start of the beam, m
    s: Float[Array, "*batch beams sections"]
    #: points of the axes of the undeformed beams, m
    points: Float[Array, "*batch beams sections 3"]
    #: rotation vectors of the sections, rad
    section_rotation: Float[Array, "*batch beams sections 3"]
    #: displacements of the sections, m
    section_translation: Float[Array, "*batch beams sections 3"]
    #: origins of all links and frames of the rigid robot, m
    origins: Float[Array, "*batch names 3"]
    #: rotation vectors of all links and frames, rad
    rotation: Float[Array, "*batch names 3"]
    #: displacements of the origins of all links and frames, m
    translation: Float[Array, "*batch names 3"]

    def displacement(self, name: str) -> Float[Array, "*batch 3"]:
        """Displacement of the origin of a link or frame, m."""
        return self.translation[..., self._row(name), :]

    def rotation_vector(self, name: str) -> Float[Array, "*batch 3"]:
        """Rotation vector of a link or frame, rad."""
        return self.rotation[..., self._row(name), :]

    def _row(self, name: str) -> int:
        if name not in self.names:
            raise ModelError(f"no link or frame is called {name!r}; names are {format_names(self.names)}")
        return self.names.index(name)


@eqx.filter_jit
def deflections(
    model: Model,
    beams: Beams,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    sections: int = 21,
    has_shear: bool = False,
) -> Deflections:
    """Displacements of beams, links and frames under the internal loads of a state.

    The joints keep their coordinates, and links without beams are rigid. With the bending moment M_b, torque T and
    axial force N (`internal_loads`), the end of a beam of length l along e rotates and moves relative to its start by

        th = int M_b / E I ds + e int T / G J_t ds,   d = int (l - s) M_b / E I ds x e + e int N / E A ds

    which moves the tip of the robot by the sum of `d_j + th_j x (p_tip - p_end,j)` over all beams j. Displacements are
    small, and quasi-static: the loads are those of the rigid robot, and vibrations are not included.

    Arguments: as for `internal_loads`, and

    * `has_shear`: whether the beams have the shear deformation `V / k G A` (Timoshenko)

    Returns `Deflections` in world axes. Raises as `internal_loads`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.beams import Beam, Material, Tube
    from jaxdyn.loads import deflections

    tube = Beam(Tube(0.03, 0.026), Material.aluminium(), 0.8)
    arm = jd.ModelBuilder().add_link("arm", "world", inertia=tube.inertia())
    arm = arm.add_frame("tip", "arm", translation=(0.8, 0.0, 0.0)).build()
    none = jnp.zeros(0)
    sag = deflections(arm, {"arm": tube}, none, none, none).displacement("tip")
    assert jnp.isclose(sag[2], -0.0491709355e-3, rtol=1e-4)  # m, under its own weight
    ```
    """
    check_sections(sections)
    state, links = robot_forces(model, q, v, a, external), link_beams(model, beams)
    bent = map_links(lambda link: _deform_link(state, link, sections, has_shear), links)
    own = jnp.zeros_like(state.external)
    for link, x in zip(links.values(), bent, strict=True):
        own = own.at[link.children].set(x.of_children)
    carried = jnp.asarray(ancestor_mask(model.topology.parents).T, own.dtype) @ own
    rows = [_place_sections(x, carried[link.link]) for link, x in zip(links.values(), bent, strict=True)]
    s, points, turn, shift = (join_rows([y for x in xs for y in x]) for xs in zip(*rows, strict=True))
    names = model.link_names + model.frame_names
    return Deflections(row_names(links), names, s, points, turn, shift, *_displace_frames(state, links, bent, carried))


class _BentLink(eqx.Module):
    """Deformation of one link relative to its joint, as twists (rotation, displacement of the world's origin)."""

    s: list[Float[Array, " sections"]]
    points: list[Float[Array, "sections 3"]]
    of_sections: list[Float[Array, "sections 6"]]
    of_children: Float[Array, "children 6"]
    of_frames: Float[Array, "frames 6"]


def _deform_link(state: RobotForces, link: LinkBeams, count: int, has_shear: bool) -> _BentLink:
    sections = attach_forces(state, link)
    s = [sections.stations(k, count)[0] for k in range(len(link.beams))]
    twists = _deformation(sections, s, has_shear)
    attached = _at_points(sections, s, twists)
    rotation, translation = sections.forces.motion.rotation, sections.forces.motion.translation
    axes = [jax.vmap(lambda x, beam=beam: axis_point(beam, x))(x) for beam, x in zip(link.beams, s, strict=True)]
    to_world = lambda x: _to_world(rotation, translation, x - attached[0])
    children = 1 + link.children.size
    return _BentLink(
        s,
        [translation + x @ rotation.T for x in axes],
        [to_world(x) for x in twists],
        to_world(attached[1:children]),
        to_world(attached[children + 1 :]),
    )


def _deformation(link: LinkSections, s: list[Array], has_shear: bool) -> list[Float[Array, "sections 6"]]:
    """Twist of each section about the link's origin: the integral of the strains, continued from beam to beam."""
    twists, start = [], jnp.zeros(6, link.forces.external.dtype)
    for number, stations in enumerate(s):
        width = jnp.diff(stations)
        inside = stations[:-1, None] + jnp.asarray(_POINTS, width.dtype) * width[:, None]
        rates = jax.vmap(jax.vmap(lambda x, k=number: _strain_twist(link, k, x, has_shear)))(inside)
        steps = width[:, None] * jnp.einsum("g,ngi->ni", jnp.asarray(_WEIGHTS, width.dtype), rates)
        twists.append(jnp.concatenate([start[None], start + jnp.cumsum(steps, 0)]))
        start = twists[-1][-1]
    return twists


def _strain_twist(link: LinkSections, number: int, s: Scalar, has_shear: bool) -> Vec6:
    """Curvature and stretch per length at a section, as a twist about the link's origin in link axes."""
    beam = link.beams[number]
    force, moment = jnp.split(link.outer_wrench(number, s, jnp.zeros((), bool)), 2)
    section, e, g = beam.section_at(s), beam.material.youngs_modulus, beam.material.shear_modulus
    n = section.properties()
    stiffness = jnp.stack([g * n.torsion_constant, e * n.second_moment_y, e * n.second_moment_z])
    curvature = beam.placement.rotation @ (moment / stiffness)
    strain = jnp.zeros_like(force).at[0].set(force[0] / (e * n.area))
    if has_shear:
        k = section.shear_coefficients(beam.material.poisson_ratio)
        strain = strain.at[1:].set(force[1:] / (k * g * n.area))
    stretch = beam.placement.rotation @ strain - jnp.cross(curvature, axis_point(beam, s))
    return jnp.concatenate([curvature, stretch])


def _at_points(link: LinkSections, s: list[Array], twists: list[Array]) -> Float[Array, "points 6"]:
    """Twists of the attached points, each of which has a station of its beam."""
    rows = [x[jnp.argmin(jnp.abs(stations - link.s[:, None]), 1)] for stations, x in zip(s, twists, strict=True)]
    return jnp.take_along_axis(jnp.stack(rows), link.beam[None, :, None], 0)[0]


def _to_world(rotation, translation, twists: Float[Array, "rows 6"]) -> Float[Array, "rows 6"]:
    """Twists about the origin of a link in its axes, about the world's origin in world axes."""
    turn, shift = twists[:, :3] @ rotation.T, twists[:, 3:] @ rotation.T
    return jnp.concatenate([turn, shift + jnp.cross(translation, turn)], 1)


def _shift_points(twists: Float[Array, "rows 6"], points: Float[Array, "rows 3"]):
    """Rotation vectors, and displacements of points of bodies that move by the twists."""
    return twists[:, :3], twists[:, 3:] + jnp.cross(twists[:, :3], points)


def _place_sections(x: _BentLink, carried: Vec6):
    moved = [_shift_points(twist + carried, points) for twist, points in zip(x.of_sections, x.points, strict=True)]
    return x.s, x.points, [turn for turn, _ in moved], [shift for _, shift in moved]


def _displace_frames(state: RobotForces, links: dict[str, LinkBeams], bent: list[_BentLink], carried):
    """Origins, rotation vectors and displacements of all links, then of all frames."""
    owners = np.array(state.model.topology.frame_links, int)
    m, frames = state.motions, carried[owners]
    for link, x in zip(links.values(), bent, strict=True):
        frames = frames.at[link.frames].add(x.of_frames)
    places = m.translation[owners] + jnp.einsum("fij,fj->fi", m.rotation[owners], state.model.frames.translation)
    rows = [(x, *_shift_points(twists, x)) for twists, x in ((carried, m.translation), (frames, places))]
    return tuple(jnp.concatenate(x) for x in zip(*rows, strict=True))


@eqx.filter_jit
def deflections_along(
    trajectory: Trajectory, beams: Beams, *, sections: int = 21, has_shear: bool = False
) -> Deflections:
    """Displacements of beams, links and frames along a trajectory, under all its efforts and wrenches.

    Arguments: `beams`, `sections` and `has_shear` as for `deflections`. Arrays of the result have the leading axis
    `times`. Raises `ShapeError` for a batch of trajectories (`jax.vmap`, or select one).
    """
    check_single(trajectory)
    model = trajectory.system.mounted_model
    at = lambda *state: deflections(model, beams, *state, sections=sections, has_shear=has_shear)
    return jax.vmap(at)(trajectory.q, trajectory.v, trajectory.acceleration, trajectory.external)
