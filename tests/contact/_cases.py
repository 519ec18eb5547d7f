"""Two bodies in arbitrary poses, shapes and surfaces, and distances by independent routes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize
from scipy.spatial.transform import Rotation

import jaxdyn as jd
import jaxdyn.contact as ct
from jaxdyn.constraints.contract import Configuration
from jaxdyn.spatial import rotation_vector_to_matrix

AXES = np.array([1.0, 2.0, 3.0])


class Ellipsoid(eqx.Module):
    """`phi(p) = sum_k weight_k p_k^2 - 1`, which is no distance."""

    weights: jax.Array

    def __call__(self, p):
        return self.weights @ p**2 - 1


SHAPES = {
    "point": ct.Point(),
    "sphere": ct.Sphere(0.1),
    "capsule": ct.Capsule(0.1, 0.6),
    "disc": ct.Disc(0.4),
}


def surfaces():
    """The surfaces, with leaves in the precision of the process."""
    return {
        "plane": ct.Plane((0.1, 0.2, 0.3)),
        "sphere": ct.Sphere(0.4),
        "cylinder": ct.Cylinder(0.3),
        "capsule": ct.Capsule(0.2, 0.8),
        "inside sphere": ct.Inside(ct.Sphere(2.0)),
        "inside cylinder": ct.Inside(ct.Cylinder(2.0)),
        "implicit": ct.ImplicitSurface(Ellipsoid(jnp.asarray(AXES))),
    }


def two_bodies():
    """Two free bodies, "a" and "b"."""
    b = jd.ModelBuilder()
    for name in ("a", "b"):
        b.add_link(name, "world", jd.joints.Free(), jd.spatial.point_mass(1.0))
    return b.build()


def configuration(rotation, translation):
    """A configuration with given poses of both bodies, `(2, 3, 3)` and `(2, 3)`."""
    model = two_bodies()
    zero = jnp.zeros(model.nq, translation.dtype)
    return Configuration(model, zero[0], zero, rotation, translation)


def move(rotation, translation, twists, e):
    """The configuration after the bodies moved by `e` times their twists `(2, 6)`, in world axes."""
    spin = jax.vmap(rotation_vector_to_matrix)(e * twists[:, :3])
    return configuration(spin @ rotation, translation + e * twists[:, 3:])


def flat_touch(touch: ct.Touch):
    """Gap, point and normal in one array `(7,)`."""
    return jnp.concatenate([touch.gap[None], touch.point, touch.normal])


def derivatives(f, order: int):
    """Function from e to f and its derivatives up to an order, as rows."""
    rows = lambda e: f(e)[None]
    for _ in range(order):
        rows = _append_derivative(rows)
    return rows


def _append_derivative(f):
    def rows(e):
        values, change = jax.jvp(f, (e,), (jnp.ones_like(e),))
        return jnp.concatenate([values, change[-1:]])

    return rows


def random_poses(count: int, seed: int, spread=1.0):
    """Rotations `(count, 2, 3, 3)` and translations `(count, 2, 3)`."""
    rng = np.random.default_rng(seed)
    rotation = Rotation.random(2 * count, rng).as_matrix().reshape(count, 2, 3, 3)
    return rotation, spread * rng.normal(size=(count, 2, 3))


# Distances of points from the surfaces above, in numpy


def _ellipsoid(p):
    """Distance from outside: `x_k = p_k / (1 + 2 l w_k)` is on the ellipsoid."""
    x = lambda l: p / (1 + 2 * l * AXES)
    l = optimize.brentq(lambda l: AXES @ x(l) ** 2 - 1, 0, 1e3, xtol=1e-15)
    return float(np.linalg.norm(p - x(l)))


DISTANCES = {
    "plane": lambda p: p @ np.array([0.1, 0.2, 0.3]) / np.sqrt(0.14),
    "sphere": lambda p: np.linalg.norm(p) - 0.4,
    "cylinder": lambda p: np.hypot(p[0], p[1]) - 0.3,
    "capsule": lambda p: np.linalg.norm(p - [0, 0, np.clip(p[2], -0.4, 0.4)]) - 0.2,
    "inside sphere": lambda p: 2 - np.linalg.norm(p),
    "inside cylinder": lambda p: 2 - np.hypot(p[0], p[1]),
    "implicit": _ellipsoid,
}


def least_distance(shape: str, surface: str, rotation, translation) -> float:
    """Gap of a shape on body a and a surface on body b, by minimisation along the curve of the shape."""
    r, p = rotation[1].T @ rotation[0], rotation[1].T @ (translation[0] - translation[1])
    distance = DISTANCES[surface]
    if shape in ("point", "sphere"):
        return distance(p) - (0.1 if shape == "sphere" else 0.0)
    if shape == "capsule":
        curve, radius = (lambda s: p + 0.6 * (s - 0.5) * r[:, 2]), 0.1
    else:
        curve = lambda s: p + 0.4 * (np.cos(2 * np.pi * s) * r[:, 0] + np.sin(2 * np.pi * s) * r[:, 1])
        radius = 0.0
    grid = np.linspace(0, 1, 101)
    values = [distance(curve(s)) for s in grid]
    k = int(np.argmin(values))
    bounds = (grid[k] - 0.01, grid[k] + 0.01)
    if shape == "capsule":
        bounds = np.clip(bounds, 0, 1)
    found = optimize.minimize_scalar(
        lambda s: distance(curve(s)), bounds=bounds, method="bounded", options={"xatol": 1e-9}
    )
    return min(found.fun, values[k]) - radius
