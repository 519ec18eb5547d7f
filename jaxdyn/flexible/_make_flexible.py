"""Rigid links of a model made flexible."""

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from jaxdyn._errors import ModelError, format_names
from jaxdyn._numerics import is_concrete
from jaxdyn.beams import Beam
from jaxdyn.flexible._add_flexible_link import add_sublinks, make_part
from jaxdyn.flexible._flexible_link import FlexibleLink, Lump, check_fraction
from jaxdyn.flexible._strains import Strains
from jaxdyn.model import Model, move_attachments, to_builder
from jaxdyn.spatial import Inertia, inertia_defect, steiner

#: relative difference of masses that counts as rounding
_ROUNDING = 1e-9


def make_flexible(
    model: Model,
    link: str,
    beam: Beam,
    *,
    sublinks: int = 8,
    strains: Strains | None = None,
    attached: Mapping[str, float] | None = None,
    lumps: Sequence[Lump] | None = None,
    lump_fraction: float | None = None,
) -> tuple[Model, FlexibleLink]:
    """The model with one of its links flexible, and the part with its beam.

    In the undeformed configuration, where the coordinates of the elastic joints are zero, the robot has the same poses
    and the same inertia as before: the beam carries a part of the inertia of the link, and the difference becomes a
    rigid body that is fixed to the beam. Links, frames and closures on the link are then fixed to the end of the beam,
    those in `attached` to other points, at their former poses.

    Arguments:

    * `model`, `link`: the robot and the name of a link
    * `beam`: a `Beam`, placed in the axes of the link
    * `sublinks`, `strains`: as in `add_flexible_link`
    * `attached`: fractions of the length, from 0 to 1, at which links, frames and closures are fixed, by name; 1 unless
      given
    * `lumps`: bodies on the beam in place of the difference of the inertias
    * `lump_fraction`: where the difference is fixed, by default the point of the axis next to its centre of mass

    Returns `(model, part)` for `System(model, parts=(part, ...))`; elsewhere use `part.mount(model)`. Shapes stay on
    the first sublink. The difference is a leaf of the part, so that it does not change with the beam. Raises
    `ModelError` if the difference is not the inertia of a rigid body, as where the beam is heavier than the link, and
    for names that are not on the link.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.beams import Beam, Material, Tube
    from jaxdyn.flexible import make_flexible
    from jaxdyn.spatial import Pose, rpy_to_matrix

    arm = jd.robots.ur5()
    along = Pose(rpy_to_matrix([0.0, 0.0, jnp.pi]), [0.0, 0.0, 0.113])  # the upper arm extends along -x
    tube = Beam(Tube(0.043, 0.039), Material.aluminium(), 0.425, placement=along)
    flexible, part = make_flexible(arm, "link2", tube, sublinks=4)
    mounted = part.mount(flexible)
    assert mounted.nv == 6 + 4 * 3 and jnp.isclose(mounted.links.mass.sum(), arm.links.mass.sum())
    ```
    """
    body = model.link(link)
    attached = dict(attached or {})
    for name, fraction in attached.items():
        check_fraction(f"make_flexible: the fraction of {name!r}", fraction)
    if lumps is None:
        lumps = _difference(link, Inertia(body.mass, body.com, body.inertia), beam, lump_fraction)
    names = {1.0: f"{link}_tip"}
    for fraction in attached.values():
        names.setdefault(float(fraction), f"{link}_station{len(names)}")
    stations = {name: fraction for fraction, name in names.items()}
    part = make_part(link, beam, sublinks, strains, lumps, stations)
    builder = to_builder(model)
    point = lambda fraction: beam.placement.apply(beam.length * fraction * jnp.eye(3)[0])
    at = lambda name: float(attached.get(name, 1.0))
    found = move_attachments(builder, link, lambda name: (names[at(name)], point(at(name))))
    unknown = sorted(set(attached) - set(found))
    if unknown:
        raise ModelError(
            f"make_flexible: {format_names(unknown)} in `attached` is not on link {link!r}; expected some of "
            f"{format_names(sorted(found))}"
        )
    add_sublinks(builder, part)
    if any(shape.link == link for shape in model.shapes):
        builder.add_note(f"link {link}", "flexible: its shapes are on its first sublink")
    return builder.build(model.dtype), part


def _difference(link: str, whole: Inertia, beam: Beam, fraction: float | None) -> tuple[Lump, ...]:
    """The inertia of the link without the beam, as a body on the beam."""
    part = beam.inertia()
    mass = whole.mass - part.mass
    is_zero = jnp.abs(mass) <= _ROUNDING * whole.mass
    mass = jnp.where(is_zero, 0, mass)
    moment = whole.mass * whole.com - part.mass * part.com
    centre = jnp.where(is_zero, whole.com, moment / jnp.where(is_zero, 1, mass))
    about = lambda body: body.inertia + body.mass * steiner(body.com - centre)
    rest = Inertia(mass, centre, about(whole) - about(part))
    _check_difference(link, whole, part, rest)
    axis, start, length = beam.placement.rotation[:, 0], beam.placement.translation, beam.length
    if fraction is None:
        place = axis @ (centre - start) / length
        if not is_concrete(place):
            raise ModelError(
                f"make_flexible: the inertia of link {link!r} or its beam is traced, so the place of the difference is "
                "not known; give lump_fraction, a number from 0 to 1"
            )
        fraction = float(np.clip(place, 0.0, 1.0))
    return (Lump(rest.moved(-(start + fraction * length * axis)), fraction),)


def _check_difference(link: str, whole: Inertia, part: Inertia, rest: Inertia):
    if not is_concrete((whole, part)):
        return
    where = f"make_flexible: link {link!r}"
    if rest.mass < 0:
        raise ModelError(
            f"{where} has a mass of {float(whole.mass):.6g} kg and its beam {float(part.mass):.6g} kg; expected a beam "
            "that is not heavier: reduce its section, length or density, or give lumps=() to replace the inertia"
        )
    size = float(np.trace(np.asarray(whole.inertia)) + whole.mass * np.sum(np.square(whole.com)))
    defect = inertia_defect(rest.mass, np.asarray(rest.inertia) + _ROUNDING * size * np.eye(3))
    moment = np.abs(whole.mass * whole.com - part.mass * part.com).max() if rest.mass == 0 else 0.0
    if defect is not None or moment**2 > _ROUNDING * float(whole.mass) * size:
        reason = defect or f"has a first moment of {float(moment):.6g} kg m without mass"
        raise ModelError(
            f"{where} without its beam {reason}; expected the inertia of a rigid body: correct section, length or "
            "placement of the beam, or give lumps=(...) with the bodies on the beam"
        )
