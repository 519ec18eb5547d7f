"""Assembly of flexible links."""

from collections.abc import Mapping, Sequence

from jaxdyn._errors import ArgumentError, check_count, check_instance
from jaxdyn.beams import Beam
from jaxdyn.flexible._flexible_link import FlexibleLink, Lump, check_fraction
from jaxdyn.flexible._strains import Strains
from jaxdyn.joints import AbstractJoint
from jaxdyn.model import ModelBuilder

#: note in the report on a flexible link
_NOTE = "its inertia, lengths, stiffness and damping are brought by FlexibleLink.mount"


def add_flexible_link(
    builder: ModelBuilder,
    name: str,
    parent: str = "world",
    joint: AbstractJoint | None = None,
    *,
    beam: Beam,
    sublinks: int = 8,
    strains: Strains | None = None,
    lumps: Sequence[Lump] = (),
    stations: Mapping[str, float] | None = None,
    **options,
) -> FlexibleLink:
    """Adds a flexible link to a `ModelBuilder`, and returns the part with its beam.

    Payloads and further links are attached to the link `<name>_tip` at the end of the beam, which has the axes of the
    undeformed link, or to another station. The elastic joints are `<name>_flexure1` and so on; their coordinates are
    zero in the undeformed link.

    Arguments:

    * `builder`, `name`, `parent`, `joint`: as in `ModelBuilder.add_link`; a beam without joint is clamped
    * `beam`: a `Beam`, placed in the axes of the link
    * `sublinks`: number of elastic joints, structure. Eight give the first frequency of a cantilever within 0.4 %,
      sixteen within 0.1 %
    * `strains`: the deformations, by default bending in both directions and torsion (`Strains`)
    * `lumps`: bodies that are fixed to the beam
    * `stations`: names of further links on the beam, with their fractions of the length
    * `options`: `joint_name`, placement and properties of the joint, as in `ModelBuilder.add_link`

    Returns the `FlexibleLink`. Give it to `System(model, parts=(part, ...))`, and use `part.mount(model)` elsewhere:
    the model that the builder makes has massless sublinks without length. Raises `ArgumentError` for a wrong number of
    sublinks or fraction, and `ModelError` as `add_link` does.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.beams import Beam, Material, Round
    from jaxdyn.flexible import add_flexible_link

    builder = jd.ModelBuilder()
    rod = Beam(Round(0.005), Material.steel(), 0.8)
    part = add_flexible_link(builder, "arm", beam=rod, sublinks=8)
    arm = part.mount(builder.build())
    frequency = jd.modes(arm, jnp.zeros(arm.nq), gravity=False).frequencies[0]  # 71 rad/s
    ```
    """
    part = make_part(name, beam, sublinks, strains, lumps, stations)
    builder.add_link(name, parent, joint, None, **options)
    add_sublinks(builder, part)
    return part


def make_part(name: str, beam: Beam, sublinks: int, strains, lumps, stations) -> FlexibleLink:
    """The part, from checked arguments."""
    where = f"flexible link {name!r}"
    strains = Strains() if strains is None else strains
    check_instance(f"{where}: beam", beam, Beam, "make one with jaxdyn.beams.Beam")
    check_instance(f"{where}: strains", strains, Strains, "write for example Strains.planar()")
    check_count(f"{where}: sublinks", sublinks)
    for lump in lumps:
        check_instance(f"{where}: a lump", lump, Lump, "write Lump(inertia, fraction)")
    stations = {f"{name}_tip": 1.0} | dict(stations or {})
    for station, fraction in stations.items():
        check_fraction(f"{where}: the fraction of station {station!r}", fraction)
    if stations[f"{name}_tip"] != 1:
        raise ArgumentError(f"{where}: station '{name}_tip' is the end of the beam; choose another name")
    return FlexibleLink(name, beam, sublinks, strains, tuple(lumps), tuple(stations.items()))


def add_sublinks(builder: ModelBuilder, part: FlexibleLink):
    """Adds the sublinks behind the first one and the stations, without numbers."""
    names = part.link_names
    for k, joint_name in enumerate(part.joint_names, 1):
        builder.add_link(names[k], names[k - 1], part.strains.joint(), joint_name=joint_name)
    for station, fraction in part.stations:
        builder.add_link(station, names[part.sublink_at(fraction)])
    builder.add_note(f"link {part.name}", _NOTE)
