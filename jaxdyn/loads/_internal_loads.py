"""Internal forces and moments of links, for one state and along a trajectory."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._errors import ShapeError, check_count
from jaxdyn._numerics import safe_norm
from jaxdyn._types import Array, Float
from jaxdyn.loads._beams import Beams, LinkBeams, link_beams, map_links, row_names
from jaxdyn.loads._link_forces import RobotForces, robot_forces
from jaxdyn.loads._sections import attach_forces
from jaxdyn.model import Model
from jaxdyn.simulation import Trajectory


class InternalLoads(eqx.Module):
    """Internal forces and moments at sections of beams, one row for each beam.

    They are the force and the moment that the outer part of the link exerts on the section, in axes of the beam: x
    along the beam, y and z along the principal axes of the section. Tension is positive. Along a trajectory, all
    arrays have a leading axis of times.
    """

    #: link of each beam
    links: tuple[str, ...] = eqx.field(static=True)
    #: distance of the sections from the start of the beam, m; there is a section on either side of the places of joints
    #: and frames, some of which slide along the beam
    s: Float[Array, "*batch beams sections"]
    #: N, V_y, V_z, N
    force: Float[Array, "*batch beams sections 3"]
    #: T, M_y, M_z, N m
    moment: Float[Array, "*batch beams sections 3"]

    @property
    def axial(self) -> Float[Array, "*batch beams sections"]:
        """Axial force, positive in tension, N."""
        return self.force[..., 0]

    @property
    def shear(self) -> Float[Array, "*batch beams sections"]:
        """Magnitude of the shear force, N."""
        return safe_norm(self.force[..., 1:], axis=-1)

    @property
    def torque(self) -> Float[Array, "*batch beams sections"]:
        """Torsional moment, N m."""
        return self.moment[..., 0]

    @property
    def bending(self) -> Float[Array, "*batch beams sections"]:
        """Magnitude of the bending moment, N m."""
        return safe_norm(self.moment[..., 1:], axis=-1)


@eqx.filter_jit
def internal_loads(
    model: Model,
    beams: Beams,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    external: Float[Array, "links 6"] | None = None,
    *,
    sections: int = 21,
) -> InternalLoads:
    """Internal force and moment of links at sections of their beams.

    The outer part of the beam, the joints of further links, masses and external wrenches beyond the section s are in
    dynamic equilibrium with the internal force Q and moment M,

        Q(s) = Q_l + int_s^l mu (g - a(r)) ds',   M(s) = M_l + int_s^l (r(s') - r(s)) x dQ' - (rotary inertia)

    where `a(r) = a_0 + alpha x r + w x (w x r)`. A link may have several beams, which follow each other from its joint
    outwards. Joints act on the nearest point of the beams of their links. If mass or inertia of the link differ from
    those of its beams, the difference is a lump at its centre of mass. External wrenches act at the end of the last
    beam; for another place, add a link without mass there by a fixed joint, and give the wrench to that link.

    Arguments:

    * `model`: the robot
    * `beams`: for each link of interest, by its name, a `Beam` or a sequence of beams
    * `q`, `v`, `a`: configuration, velocity and acceleration, `(nq,)`, `(nv,)`, `(nv,)`
    * `external`: wrenches (moment, force) on the links, `(num_links, 6)`, in link axes about the link's origin, or None
    * `sections`: number of sections at equal distances along each beam, at least 2; both sides of the places of joints,
      frames and the lump are added to them

    Returns `InternalLoads`. Raises `ModelError` for an unknown link and `ArgumentError` for other objects than beams.

    Reference: Vukobratovic and Potkonjak, "Applied dynamics and CAD of manipulation robots", 1985.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.beams import Beam, Material, Tube
    from jaxdyn.loads import internal_loads
    from jaxdyn.spatial import Pose, rpy_to_matrix

    down = Pose(rpy_to_matrix([0.0, jnp.pi / 2, 0.0]), jnp.zeros(3))
    tube = Beam(Tube(0.03, 0.026), Material.aluminium(), 1.0, placement=down)
    arm = jd.robots.double_pendulum()
    q, v = jnp.array([0.4, -0.2]), jnp.zeros(2)
    a = jd.forward_dynamics(arm, q, v, jnp.zeros(2))
    loads = internal_loads(arm, {"upper": tube}, q, v, a)
    assert loads.bending.shape == loads.s.shape
    ```
    """
    check_sections(sections)
    state = robot_forces(model, q, v, a, external)
    links = link_beams(model, beams)
    rows = map_links(lambda link: _loads_of_link(state, link, sections), links)
    s, loads = (join_rows(x) for x in zip(*(beam for link in rows for beam in link), strict=True))
    return InternalLoads(row_names(links), s, loads[..., :3], loads[..., 3:])


def check_sections(sections: int):
    """Raises `ArgumentError` unless there are two sections."""
    check_count("sections", sections, 2)


def _loads_of_link(state: RobotForces, link: LinkBeams, count: int) -> list[tuple[Array, Array]]:
    """Positions of the sections of each beam, and (force, moment) there."""
    sections, rows = attach_forces(state, link), []
    for k in range(len(link.beams)):
        s, is_inner = sections.stations(k, count)
        rows.append((s, jax.vmap(lambda s, side, k=k: sections.outer_wrench(k, s, side))(s, is_inner)))
    return rows


def join_rows(rows: Sequence[Array]) -> Array:
    """Stacks the values at the sections of all beams; the last section is repeated where a beam has fewer sections."""
    length = max(len(x) for x in rows)
    return jnp.stack([x[jnp.minimum(jnp.arange(length), len(x) - 1)] for x in rows])


@eqx.filter_jit
def internal_loads_along(trajectory: Trajectory, beams: Beams, *, sections: int = 21) -> InternalLoads:
    """Internal forces and moments of links along a trajectory, under all its efforts and wrenches.

    Constraint and contact forces are included. Arrays of the result have the leading axis `times`.

    Arguments: `beams` and `sections` as for `internal_loads`. Raises `ShapeError` for a batch of trajectories
    (`jax.vmap`, or select one).

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.beams import Beam, Material, Round
    from jaxdyn.loads import internal_loads_along

    run = jd.simulate(jd.robots.pendulum(), jnp.array([0.4]), jnp.zeros(1), jnp.linspace(0.0, 0.5, 6))
    loads = internal_loads_along(run, {"rod": Beam(Round(0.01), Material.steel(), 0.2)}, sections=5)
    assert loads.force.shape == (*loads.s.shape, 3) and len(loads.s) == 6
    ```
    """
    check_single(trajectory)
    at = lambda *state: internal_loads(trajectory.system.mounted_model, beams, *state, sections=sections)
    return jax.vmap(at)(trajectory.q, trajectory.v, trajectory.acceleration, trajectory.external)


def check_single(trajectory: Trajectory):
    """Raises `ShapeError` for a batch of trajectories."""
    if trajectory.t.ndim != 1:
        raise ShapeError(
            f"the loads are those of one trajectory, not of a batch of shape {trajectory.t.shape[:-1]}; select one, "
            "trajectory[k], or map over the batch by jax.vmap"
        )
