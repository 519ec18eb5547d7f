"""Robots, states and reference values that all engines share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

RNEA, MASS, FORWARD = "inverse dynamics", "mass matrix", "forward dynamics"
JACOBIAN = "Jacobian of forward dynamics"
GRAD_STATE, GRAD_MODEL = "gradient in q, v, tau", "gradient in model leaves"
VALUES = (RNEA, MASS, FORWARD)
WORKS = (*VALUES, JACOBIAN, GRAD_STATE, GRAD_MODEL)
ROBOTS = ("panda", "humanoid")
#: relative agreement asked for before timing; in float32 the conditioning of the mass matrix enters
TOLERANCE = {"float64": 1e-9, "float32": 2e-2}


@dataclass(frozen=True)
class Problem:
    """A robot and a batch of random states, rows in the conventions of jaxdyn, float64 numpy."""

    name: str
    model: Any
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    weights: np.ndarray  # of the accelerations in the scalar whose gradient is taken

    @property
    def floating(self) -> bool:
        return self.q.shape[1] != self.v.shape[1]


def problem(name: str, samples: int) -> Problem:
    """The robot called `name` with seeded states."""
    from jaxdyn import robots

    model = getattr(robots, name)()
    rng = np.random.default_rng(0)
    draw = lambda n: rng.standard_normal((samples, n))
    q = rng.uniform(-2, 2, (samples, model.nq))
    if model.nq != model.nv:
        q[:, :4] = draw(4)
        q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    nv = model.nv
    return Problem(name, model, q, draw(nv), draw(nv), 10 * draw(nv), rng.standard_normal(nv))


def swapped_base(x: np.ndarray, floating: bool, axis: int = -1) -> np.ndarray:
    """Velocity coordinates with the halves of the free joint exchanged: angular first or linear first."""
    if not floating:
        return x
    order = np.r_[3:6, 0:3, 6 : x.shape[axis]]
    return np.take(x, order, axis=axis)


def to_mujoco(p: Problem) -> tuple[np.ndarray, ...]:
    """q, v, a, tau in MuJoCo's conventions, also frax's: position first, linear velocity in world axes.

    As their acceleration is the derivative of that velocity, `a = R (a_body + w x v_body)`.
    """
    if not p.floating:
        return p.q, p.v, p.a, p.tau
    r = base_rotation(p)
    turn = lambda x: np.einsum("nij,nj->ni", r, x)
    q = np.concatenate([p.q[:, 4:7], p.q[:, :4], p.q[:, 7:]], axis=1)
    v, a, tau = (swapped_base(x, True) for x in (p.v, p.a, p.tau))
    a[:, :3] = turn(a[:, :3] + np.cross(p.v[:, :3], p.v[:, 3:6]))
    v[:, :3], tau[:, :3] = turn(v[:, :3]), turn(tau[:, :3])
    return q, v, a, tau


def forces_from_mujoco(p: Problem, tau: np.ndarray) -> np.ndarray:
    """Generalised forces back in the conventions of jaxdyn."""
    if not p.floating:
        return tau
    tau = np.array(tau, float)
    tau[:, :3] = np.einsum("nji,nj->ni", base_rotation(p), tau[:, :3])
    return swapped_base(tau, True)


def accelerations_from_mujoco(p: Problem, a: np.ndarray) -> np.ndarray:
    """Accelerations back in the conventions of jaxdyn."""
    if not p.floating:
        return a
    a = np.array(a, float)
    a[:, :3] = np.einsum("nji,nj->ni", base_rotation(p), a[:, :3])
    a[:, :3] -= np.cross(p.v[:, :3], p.v[:, 3:6])
    return swapped_base(a, True)


def mass_from_mujoco(p: Problem, m: np.ndarray) -> np.ndarray:
    """Mass matrices back in the conventions of jaxdyn."""
    if not p.floating:
        return m
    m, r = np.array(m, float), base_rotation(p)
    m[:, :3] = np.einsum("nji,njk->nik", r, m[:, :3])
    m[:, :, :3] = np.einsum("nij,njk->nik", m[:, :, :3], r)
    return swapped_base(swapped_base(m, True), True, axis=1)


def base_rotation(p: Problem) -> np.ndarray:
    """Rotation matrices of the floating base."""
    w, x, y, z = p.q[:, :4].T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)
