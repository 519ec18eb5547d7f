"""A humanoid with a floating base."""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp

from jaxdyn._errors import ModelError
from jaxdyn.joints import Free, Revolute
from jaxdyn.model import Model, ModelBuilder
from jaxdyn.spatial import Inertia, box, cylinder, ellipsoid, sphere

_DEG = jnp.pi / 180
_HEIGHT, _MASS = 1.741, 73.0  # of de Leva's mean male subject
_DENSITY = 1000.0  # kg/m^3; Dempster 1955 has 920 (thorax) to 1,160 (hand), in Winter's table 4.1

# de Leva 1996, table 4, males: mass in per cent of the body, length in m at a height of 1.741 m, and the
# centre of mass from the proximal (for the trunk and the head: upper) end in per cent of the length.
_SEGMENTS = {
    "head": (6.94, 0.2429, 50.02),  # vertex to cervicale
    "chest": (15.96, 0.2421, 50.66),  # cervicale to xiphion
    "abdomen": (16.33, 0.2155, 45.02),  # xiphion to navel
    "pelvis": (11.17, 0.1457, 61.15),  # navel to the middle of the hips
    "upper_arm": (2.71, 0.2817, 57.72),
    "forearm": (1.62, 0.2689, 45.74),
    "hand": (0.61, 0.1879, 36.24),  # wrist to the tip of the middle finger
    "thigh": (14.16, 0.4222, 40.95),
    "shank": (4.33, 0.4403, 43.95),
    "foot": (1.37, 0.2581, 44.15),  # heel to the tip of the toes
}
# Fractions of the height: breadths of Drillis and Contini 1966, in Winter, figure 4.1; the height of the ankle is the
# remainder below the segments.
_OTHERS = {"shoulder_width": 0.259, "hip_width": 0.191, "ankle_height": 1 - 1.7087 / _HEIGHT}
_HUB = 0.05  # fraction of a limb's mass in each ball between the axes of its compound joint


class _Axis(NamedTuple):
    """One revolute joint: its axis on the left side, and a normal range of motion in degrees."""

    name: str
    axis: tuple[float, float, float]
    lower: float
    upper: float
    mirrored: bool = False


# Ranges of motion: American Academy of Orthopaedic Surgeons, "Joint Motion: Method of Measuring and
# Recording", 1965. x points forward, y to the left, z up; `mirrored` axes are negated on the right.
_WAIST = (
    _Axis("rotation", (0, 0, 1), -45, 45),
    _Axis("side_bend", (1, 0, 0), -35, 35),
    _Axis("flexion", (0, 1, 0), -25, 80),
)
_NECK = (
    _Axis("rotation", (0, 0, 1), -60, 60),
    _Axis("side_bend", (1, 0, 0), -45, 45),
    _Axis("flexion", (0, 1, 0), -45, 45),
)
_HIP = (
    _Axis("rotation", (0, 0, 1), -45, 45, mirrored=True),
    _Axis("abduction", (1, 0, 0), -30, 45, mirrored=True),
    _Axis("flexion", (0, -1, 0), -30, 120),
)
_KNEE = (_Axis("flexion", (0, 1, 0), 0, 135),)
_ANKLE = (_Axis("flexion", (0, -1, 0), -50, 20), _Axis("inversion", (-1, 0, 0), -15, 35, mirrored=True))
_SHOULDER = (
    _Axis("flexion", (0, -1, 0), -60, 180),
    _Axis("abduction", (1, 0, 0), -75, 180, mirrored=True),
    _Axis("rotation", (0, 0, 1), -70, 90, mirrored=True),
)
_ELBOW = (_Axis("flexion", (0, -1, 0), 0, 150),)
_WRIST = (
    _Axis("pronation", (0, 0, -1), -80, 80, mirrored=True),
    _Axis("deviation", (0, -1, 0), -30, 20),
    _Axis("flexion", (-1, 0, 0), -70, 80, mirrored=True),
)


def _masses_and_lengths(height, mass, replaced: Mapping[str, object]):
    """Masses, lengths and breadths by name; `replaced` overrides the table."""
    masses = {k: m / 100 * mass for k, (m, _, _) in _SEGMENTS.items()}
    lengths = {k: x * height / _HEIGHT for k, (_, x, _) in _SEGMENTS.items()}
    lengths |= {k: x * height for k, x in _OTHERS.items()}
    unknown = set(replaced) - set(lengths)
    if unknown:
        raise ModelError(f"humanoid has no length called {sorted(unknown)}; expected some of {sorted(lengths)}")
    return masses, lengths | dict(replaced)


def _radius(mass, length):
    """Radius of the cylinder with the density of the body."""
    return jnp.sqrt(mass / (_DENSITY * jnp.pi * length))


def _limb(segment: str, mass, length) -> Inertia:
    """Cylinder from the origin along -z with the table's centre of mass."""
    share = _SEGMENTS[segment][2] / 100
    return cylinder(_radius(mass, length), length, mass=mass).moved((0.0, 0.0, -share * length))


def _slab(segment: str, mass, length, width, below=0.0) -> Inertia:
    """Box of a trunk segment that begins `below` (m) above the origin, with the table's centre of mass."""
    share = 1 - _SEGMENTS[segment][2] / 100
    depth = mass / (_DENSITY * width * length)
    return box((depth, width, length), mass=mass).moved((0.0, 0.0, below + share * length))


def _hub(mass) -> Inertia:
    return sphere((3 * mass / (4 * jnp.pi * _DENSITY)) ** (1 / 3), mass=mass)


def _add_compound_joint(builder: ModelBuilder, joint: str, axes, parent: str, body, at, side=1.0):
    """Adds a link on revolute joints in series at one point of `parent`; `body` is `(name, inertia)`."""
    name, inertia = body
    for k, axis in enumerate(axes):
        last = k == len(axes) - 1
        sign = side if axis.mirrored else 1.0
        link = name if last else f"{joint}_{axis.name}_hub"
        builder.add_link(
            link,
            parent,
            Revolute(tuple(sign * x for x in axis.axis)),
            inertia if last else _hub(_HUB * inertia.mass / (1 - _HUB * (len(axes) - 1))),
            joint_name=f"{joint}_{axis.name}",
            translation=(0.0, 0.0, 0.0) if k else at,
            lower=axis.lower * _DEG,
            upper=axis.upper * _DEG,
        )
        parent = link


def _mass_without_hubs(mass, axes):
    return mass * (1 - _HUB * (len(axes) - 1))


def _add_leg(builder: ModelBuilder, side: str, sign: float, masses, lengths):
    thigh, shank, foot, ankle = (lengths[k] for k in ("thigh", "shank", "foot", "ankle_height"))
    body = _limb("thigh", _mass_without_hubs(masses["thigh"], _HIP), thigh)
    hip = (0.0, sign * lengths["hip_width"] / 2, 0.0)
    _add_compound_joint(builder, f"{side}_hip", _HIP, "pelvis", (f"{side}_thigh", body), hip, sign)
    body = _limb("shank", masses["shank"], shank)
    _add_compound_joint(builder, f"{side}_knee", _KNEE, f"{side}_thigh", (f"{side}_shank", body), (0.0, 0.0, -thigh))
    mass = _mass_without_hubs(masses["foot"], _ANKLE)
    width = masses["foot"] / (_DENSITY * foot * ankle)
    # The ankle is a quarter of the foot's length in front of the heel.
    forward = (_SEGMENTS["foot"][2] / 100 - 0.25) * foot
    body = box((foot, width, ankle), mass=mass).moved((forward, 0.0, -ankle / 2))
    at = (0.0, 0.0, -shank)
    _add_compound_joint(builder, f"{side}_ankle", _ANKLE, f"{side}_shank", (f"{side}_foot", body), at, sign)
    builder.add_frame(f"{side}_sole", f"{side}_foot", translation=(0.0, 0.0, -ankle))


def _add_arm(builder: ModelBuilder, side: str, sign: float, masses, lengths):
    upper, fore, hand = (lengths[k] for k in ("upper_arm", "forearm", "hand"))
    body = _limb("upper_arm", _mass_without_hubs(masses["upper_arm"], _SHOULDER), upper)
    at = (0.0, sign * lengths["shoulder_width"] / 2, lengths["abdomen"] + 0.85 * lengths["chest"])
    _add_compound_joint(builder, f"{side}_shoulder", _SHOULDER, "chest", (f"{side}_upper_arm", body), at, sign)
    body = _limb("forearm", masses["forearm"], fore)
    _add_compound_joint(
        builder, f"{side}_elbow", _ELBOW, f"{side}_upper_arm", (f"{side}_forearm", body), (0.0, 0.0, -upper)
    )
    mass = _mass_without_hubs(masses["hand"], _WRIST)
    share = _SEGMENTS["hand"][2] / 100
    thick = 6 * masses["hand"] / (_DENSITY * jnp.pi * hand)  # product of the other two axes of the ellipsoid
    radii = (jnp.sqrt(2 * thick) / 2, jnp.sqrt(thick / 2) / 2, hand / 2)
    body = ellipsoid(radii, mass=mass).moved((0.0, 0.0, -share * hand))
    at = (0.0, 0.0, -fore)
    _add_compound_joint(builder, f"{side}_wrist", _WRIST, f"{side}_forearm", (f"{side}_hand", body), at, sign)
    builder.add_frame(f"{side}_fingertip", f"{side}_hand", translation=(0.0, 0.0, -hand))


def _add_trunk(builder: ModelBuilder, masses, lengths):
    """Abdomen and chest as one link on the waist, and the head."""
    width, below = lengths["shoulder_width"], lengths["abdomen"]
    trunk = _slab("abdomen", masses["abdomen"], below, width) + _slab(
        "chest", masses["chest"], lengths["chest"], width, below
    )
    share = 1 - _HUB * (len(_WAIST) - 1)
    trunk = Inertia(share * trunk.mass, trunk.com, share * trunk.inertia)
    _add_compound_joint(builder, "waist", _WAIST, "pelvis", ("chest", trunk), (0.0, 0.0, lengths["pelvis"]))
    neck = (0.0, 0.0, below + lengths["chest"])
    head = lengths["head"]
    weight = _mass_without_hubs(masses["head"], _NECK)
    radius = jnp.sqrt(3 * masses["head"] / (2 * jnp.pi * _DENSITY * head))
    skull = ellipsoid((radius, radius, head / 2), mass=weight).moved(
        (0.0, 0.0, (1 - _SEGMENTS["head"][2] / 100) * head)
    )
    _add_compound_joint(builder, "neck", _NECK, "chest", ("head", skull), neck)
    builder.add_frame("crown", "head", translation=(0.0, 0.0, head))


def humanoid(height=_HEIGHT, mass=_MASS, *, lengths: Mapping[str, object] | None = None) -> Model:
    """A humanoid of human proportions with 38 degrees of freedom: a free pelvis and 32 revolute joints.

    In the neutral configuration it stands upright with hanging arms, palms to the thighs, x forward, y
    to its left, z up; the pelvis frame is midway between the hips. Legs have six joints (hip 3, knee,
    ankle 2), the waist and the neck three each, arms seven (shoulder 3, elbow, wrist 3). Equal left and right
    coordinates are mirror images. Frames: "left_sole", "right_sole", "left_fingertip",
    "right_fingertip", "crown".

    Masses, lengths and centres of mass are those of the mean male of de Leva, "Adjustments to Zatsiorsky-Seluyanov's
    segment inertia parameters", J. Biomechanics 29(9), 1996, table 4, scaled to `height` (m) and `mass` (kg); breadths
    are from Drillis and Contini in Winter, "Biomechanics and Motor Control of Human Movement", figure 4.1. A segment's
    inertia is that of a solid with its mass and length and the density of water: cylinders for limbs, boxes for trunk
    and feet, ellipsoids for head and hands. Each ball between the axes of a compound joint has a twentieth of the
    limb's mass.

    Arguments:

    * `height`: m. `mass`: kg.
    * `lengths`: replacements of single lengths (m): the segments "head", "chest", "abdomen", "pelvis", "upper_arm",
      "forearm", "hand", "thigh", "shank", "foot", and "shoulder_width", "hip_width", "ankle_height". An unknown name
      raises `ModelError`.

    Example:

    ```python
    import jax.numpy as jnp
    from jaxdyn import robots

    model = robots.humanoid(height=1.6, mass=55.0, lengths={"foot": 0.24})
    assert (model.nq, model.nv) == (39, 38) and jnp.isclose(model.links.mass.sum(), 55.0)
    ```
    """
    masses, lengths = _masses_and_lengths(height, mass, lengths or {})
    builder = ModelBuilder(name="humanoid")
    pelvis = _slab("pelvis", masses["pelvis"], lengths["pelvis"], lengths["hip_width"])
    builder.add_link("pelvis", "world", Free(), pelvis, joint_name="base")
    for side, sign in (("left", 1.0), ("right", -1.0)):
        _add_leg(builder, side, sign, masses, lengths)
    _add_trunk(builder, masses, lengths)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        _add_arm(builder, side, sign, masses, lengths)
    return builder.build()
