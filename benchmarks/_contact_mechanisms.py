"""Small mechanisms with contacts, each a function of its numbers, for `contact_states.py`."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp

import jaxdyn as jd
from jaxdyn.contact import (
    Capsule,
    Contact,
    ContactMotion,
    Coulomb,
    Cylinder,
    Disc,
    Gap,
    Inside,
    Newton,
    OneAfterAnother,
    Plane,
    Point,
    Poisson,
    Sphere,
    Stronge,
    capsule_ends,
)
from jaxdyn.joints import Free, Prismatic, Revolute
from jaxdyn.spatial import box, cylinder, point_mass, rod, sphere

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
Numbers = Mapping[str, Any]


class Mechanism(NamedTuple):
    """A mechanism, the ranges of its numbers and of its displacements from the neutral configuration."""

    name: str
    build: Callable[[Numbers], tuple[jd.Model, ContactMotion]]
    ranges: dict[str, tuple[float, float]]
    low: tuple[float, ...]
    high: tuple[float, ...]
    law: str
    #: numbers with which two contacts can close at once, if not with all
    at_once: tuple[tuple[str, float], ...] = ()


def _builder(p: Numbers) -> jd.ModelBuilder:
    return jd.ModelBuilder(gravity=-9.81 * jnp.asarray(Z) if "g" not in p else -p["g"] * jnp.asarray(Z))


def _slope(p: Numbers) -> Plane:
    """A plane tilted about the y axis."""
    return Plane(jnp.stack([jnp.sin(p["tilt"]), jnp.zeros_like(p["tilt"]), jnp.cos(p["tilt"])]))


def _planar(b: jd.ModelBuilder, name: str, inertia) -> jd.ModelBuilder:
    """A body that moves in the plane x, z."""
    b.add_link(f"{name}_x", "world", Prismatic(X))
    b.add_link(f"{name}_z", f"{name}_x", Prismatic(Z))
    b.add_link(name, f"{name}_z", Revolute(Y), inertia)
    return b


def point_in_a_plane(p: Numbers):
    b = _builder(p)
    b.add_link("x", "world", Prismatic(X))
    b.add_link("z", "x", Prismatic(Z), point_mass(p["mass"]))
    friction = Coulomb(p["mu"], kinetic=p["mu"] * p["kinetic"])
    return b.build(), ContactMotion(
        Contact("floor", Gap("z", Point(), "world", _slope(p)), friction, Poisson(p["e"]), Y)
    )


def point_in_space(p: Numbers):
    b = _builder(p)
    b.add_link("x", "world", Prismatic(X), point_mass(p["carriage"]))
    b.add_link("y", "x", Prismatic(Y))
    b.add_link("z", "y", Prismatic(Z), point_mass(p["mass"]))
    floor = Gap("z", Point(), "world", _slope(p))
    return b.build(), ContactMotion(Contact("floor", floor, Coulomb(p["mu"], ratio=p["ratio"]), Stronge(p["e"])))


def ball(p: Numbers):
    model = _builder(p).add_link("ball", "world", Free(), sphere(p["radius"], mass=p["mass"])).build()
    friction = Coulomb(p["mu"], rolling=p["rolling"], spinning=p["spinning"])
    floor = Gap("ball", Sphere(p["radius"]), "world", _slope(p))
    return model, ContactMotion(Contact("floor", floor, friction, Newton(p["e"])))


def rod_with_two_ends(p: Numbers):
    model = _planar(_builder(p), "rod", rod(p["length"], mass=p["mass"])).build()
    ends = [(name, jnp.asarray(Z) * side * p["length"] / 2) for name, side in (("lower", -1), ("upper", 1))]
    floor = lambda end: Gap(("rod", end), Point(), "world", Plane())
    return model, ContactMotion([Contact(name, floor(end), p["mu"], Newton(p["e"]), Y) for name, end in ends])


def box_with_four_corners(p: Numbers):
    size = jnp.stack([p["width"], jnp.ones_like(p["width"]), p["height"]])
    model = _planar(_builder(p), "box", box(size, mass=p["mass"])).build()
    corner = lambda i, k: Gap(("box", size * jnp.array([i, 0, k]) / 2), Point(), "world", _slope(p))
    contacts = [Contact(f"corner{i}{k}", corner(i, k), p["mu"], Poisson(p["e"]), Y) for i in (-1, 1) for k in (-1, 1)]
    return model, ContactMotion(contacts)


def disc(p: Numbers):
    model = _builder(p).add_link("disc", "world", Free(), cylinder(p["radius"], 0.02, mass=p["mass"])).build()
    floor = Gap("disc", Disc(p["radius"]), "world", Plane())
    return model, ContactMotion(Contact("floor", floor, p["mu"], Poisson(p["e"])))


def pendulum_at_a_stop(p: Numbers):
    b = _builder(p)
    b.add_link("rod", "world", Revolute(Y), point_mass(p["mass"]).moved(-p["length"] * jnp.asarray(Z)))
    tip = ("rod", -p["length"] * jnp.asarray(Z))
    stop = Gap(tip, Point(), ("world", jnp.asarray(X) * p["stop"]), Plane((-1.0, 0.0, 0.0)))
    return b.build(), ContactMotion(Contact("stop", stop, None, Stronge(p["e"])))


def arm_at_a_wall(p: Numbers):
    b = _builder(p)
    b.add_link("upper", "world", Revolute(Y), rod(p["upper"], mass=p["mass"]).moved(-p["upper"] / 2 * jnp.asarray(Z)))
    lower = rod(p["lower"], mass=1.0).moved(-p["lower"] / 2 * jnp.asarray(Z))
    b.add_link("lower", "upper", Revolute(Y), lower, translation=-p["upper"] * jnp.asarray(Z))
    tip = ("lower", -p["lower"] * jnp.asarray(Z))
    wall = Gap(tip, Point(), ("world", jnp.asarray(X) * p["wall"]), Plane((-1.0, 0.0, 0.0)))
    return b.build(), ContactMotion(Contact("wall", wall, p["mu"], Stronge(p["e"]), Y))


def slider_between_stops(p: Numbers):
    b = _builder(p)
    b.add_link("slider", "world", Prismatic(X), point_mass(p["mass"]))
    b.add_link("load", "slider", Revolute(Y), point_mass(1.0).moved((0.0, 0.0, -0.3)))
    stop = lambda side: Gap("slider", Point(), ("world", jnp.asarray(X) * side * p["clearance"]), Plane((-side, 0, 0)))
    contacts = [Contact(f"stop{side}", stop(side), None, Newton(p["e"])) for side in (-1.0, 1.0)]
    return b.build(), ContactMotion(contacts, impacts=OneAfterAnother(limit=20))


def two_balls(p: Numbers):
    b = _planar(_builder(p), "first", sphere(p["r1"], mass=p["m1"]))
    model = _planar(b, "second", sphere(p["r2"], mass=1.0)).build()
    floor = lambda name, r: Contact(
        f"floor of {name}", Gap(name, Sphere(r), "world", Plane()), p["mu"], Stronge(p["e"]), Y
    )
    collision = Contact("balls", Gap("first", Sphere(p["r1"]), "second", Sphere(p["r2"])), p["mu"], Stronge(p["e"]), Y)
    contacts = collision, floor("first", p["r1"]), floor("second", p["r2"])
    return model, ContactMotion(contacts, impacts=OneAfterAnother(limit=50))


def compass_gait(p: Numbers):
    model = jd.robots.compass_gait(p["a"], p["b"], p["leg"], p["hip"], floating=True)
    foot = lambda frame: Gap(frame, Point(), "world", _slope(p))
    contacts = [Contact(frame, foot(frame), p["mu"], Newton(0.0), Y) for frame in ("stance_foot", "swing_foot")]
    return model, ContactMotion(contacts)


def peg_in_a_hole(p: Numbers):
    peg = Capsule(p["radius"], p["length"])
    model = _builder(p).add_link("peg", "world", Free(), cylinder(p["radius"], p["length"], mass=p["mass"])).build()
    hole = Inside(Cylinder(p["radius"] + p["clearance"]))
    ends = zip(("lower", "upper"), capsule_ends("peg", peg, "world", hole), strict=True)
    return model, ContactMotion([Contact(name, gap, p["mu"], Newton(p["e"])) for name, gap in ends])


_E, _MU, _MASS, _TILT = (0.0, 1.0), (0.0, 1.2), (0.3, 3.0), (-0.5, 0.5)

MECHANISMS = (
    Mechanism(
        "point on a plane, in the plane",
        point_in_a_plane,
        {"mass": _MASS, "mu": _MU, "kinetic": (0.5, 1.0), "e": _E, "tilt": _TILT, "g": (1.0, 12.0)},
        (-1, 0),
        (1, 1),
        "Poisson",
    ),
    Mechanism(
        "point on a plane, in space",
        point_in_space,
        {"mass": _MASS, "carriage": _MASS, "mu": _MU, "ratio": (0.4, 1.0), "e": _E, "tilt": _TILT},
        (-1, -1, 0),
        (1, 1, 1),
        "Stronge",
    ),
    Mechanism(
        "ball with rolling friction",
        ball,
        {
            "mass": _MASS,
            "radius": (0.1, 0.5),
            "mu": _MU,
            "rolling": (0.0, 0.1),
            "spinning": (0.0, 0.1),
            "e": _E,
            "tilt": _TILT,
        },
        (-2, -2, -2, -1, -1, 0.5),
        (2, 2, 2, 1, 1, 1.5),
        "Newton",
    ),
    Mechanism(
        "rod with two ends",
        rod_with_two_ends,
        {"mass": _MASS, "length": (0.3, 1.5), "mu": (0.0, 2.0), "e": _E},
        (-1, 0, -2),
        (1, 1, 2),
        "Newton",
    ),
    Mechanism(
        "box with four corners",
        box_with_four_corners,
        {"mass": _MASS, "width": (0.2, 1.0), "height": (0.2, 1.0), "mu": _MU, "e": _E, "tilt": _TILT},
        (-1, 0, -2),
        (1, 1, 2),
        "Poisson",
    ),
    Mechanism(
        "disc on a plane",
        disc,
        {"mass": _MASS, "radius": (0.1, 0.5), "mu": _MU, "e": _E},
        (-1, -1, -1, -1, -1, 0.5),
        (1, 1, 1, 1, 1, 1.5),
        "Poisson",
    ),
    Mechanism(
        "pendulum at a stop",
        pendulum_at_a_stop,
        {"mass": _MASS, "length": (0.3, 1.5), "stop": (-0.2, 0.2), "e": _E},
        (-0.5,),
        (1.5,),
        "Stronge",
    ),
    Mechanism(
        "arm at a wall",
        arm_at_a_wall,
        {"mass": _MASS, "upper": (0.5, 1.5), "lower": (0.5, 1.5), "mu": _MU, "wall": (-0.6, 0.6), "e": _E},
        (-2, -2),
        (2, 2),
        "Stronge",
    ),
    Mechanism(
        "slider between stops",
        slider_between_stops,
        {"mass": _MASS, "clearance": (0.1, 0.5), "e": _E},
        (-0.6, -2),
        (0.6, 2),
        "Newton",
        (("clearance", 0.0),),
    ),
    Mechanism(
        "two balls on a floor",
        two_balls,
        {"m1": _MASS, "r1": (0.1, 0.4), "r2": (0.1, 0.4), "mu": _MU, "e": _E},
        (-0.5, 0, -2, -0.5, 0, -2),
        (0.5, 1, 2, 0.5, 1, 2),
        "Stronge",
    ),
    Mechanism(
        "compass gait",
        compass_gait,
        {"a": (0.3, 0.7), "b": (0.3, 0.7), "leg": _MASS, "hip": (1.0, 10.0), "mu": _MU, "tilt": (-0.1, 0.1)},
        (-1, 0, -0.6, -1),
        (1, 0.2, 0.6, 1),
        "Newton",
    ),
    Mechanism(
        "peg in a hole",
        peg_in_a_hole,
        {"mass": _MASS, "radius": (0.05, 0.1), "length": (0.3, 0.6), "clearance": (0.01, 0.05), "mu": _MU, "e": _E},
        (-0.15, -0.15, -2, -0.04, -0.04, -1),
        (0.15, 0.15, 2, 0.04, 0.04, 1),
        "Newton",
    ),
)
