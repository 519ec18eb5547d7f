"""The Gibbs-Appell equations: efforts as the gradient of the acceleration energy with respect to the accelerations.

After equations 34 to 40 of I. Negrean, A. Duca, K. Kacso, S. Mura-Cozma and C. Schonstein, "New formulations on serial
robots dynamics", COMEC 2009. They hold for quasi-velocities, and therefore for quaternions and free bodies without
further terms. Misprints of the source: the second line of (38) lacks the factor `a_3` in `-M_3 a_2 sin q_3 a_1 a_3`, as
(40) has it; the first row of `(n)J` in (36) is `(cos q_3, -sin q_3, 0)`, and velocities in frame {3} are not those in
frame {0}, as (37) has them, but for `q_3 = 0`. With the factor 1/2 before the bracket of (35), V is twice the Coriolis
and centrifugal forces.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxdyn._types import Array, Config, Float, Scalar, Velocity
from jaxdyn.formulations._axes import find_fixed_model
from jaxdyn.formulations._formulation import AbstractFormulation
from jaxdyn.formulations._gibbs_appell_forces import BodyMotions, body_motions, gravity_and_manipulating
from jaxdyn.model import Model
from jaxdyn.recursion import check_state
from jaxdyn.spatial import skew


def acceleration_energy(model: Model, q: Config, v: Velocity, a: Velocity) -> Scalar:
    """Acceleration energy, half the integral of squared acceleration over the mass (34), N^2/kg; of any model.

        E = sum 1/2 m |dv_C|^2 + 1/2 dw . I dw + dw . (w x I w) + 1/2 (w . I w) (w . w)

    over the links, with dv_C the acceleration of the mass centre and I about it, which is (34) with its operators for
    general motion and `Tr(I_p) 1 - I_p = I` for the planar moments `I_p`. Rotors (`armature`) add `1/2 armature a^2`.
    Gravity is not included.
    """
    q, v, a = check_state(model, q=q, v=v, a=a)
    return _energy(model, body_motions(model, q, v), a)


def _energy(model: Model, m: BodyMotions, a):
    dv, dw = m.accelerations(a)
    w, momentum = m.spin, m.momentum(m.spin)
    moving = 0.5 * m.mass * jnp.sum(dv * dv, axis=1)
    turning = jnp.sum(dw * (0.5 * m.momentum(dw) + jnp.cross(w, momentum)), axis=1)
    spinning = 0.5 * jnp.sum(w * momentum, axis=1) * jnp.sum(w * w, axis=1)
    return jnp.sum(moving + turning + spinning) + 0.5 * jnp.sum(model.properties.armature * a * a)


class AccelerationMatrices(eqx.Module):
    """The matrices of the quadratic form `E = 1/2 (a^T M a + a^T V + v^T D v)` (35)."""

    #: mass matrix
    M: Float[Array, "nv nv"]
    #: twice the Coriolis and centrifugal forces
    V: Float[Array, " nv"]
    #: pseudo-inertial matrix, quadratic in the velocities; symmetric
    D: Float[Array, "nv nv"]


def acceleration_matrices(model: Model, q: Config, v: Velocity) -> AccelerationMatrices:
    """Mass matrix, Coriolis and centrifugal column, and pseudo-inertial matrix of the acceleration energy (35).

    With `dv_C = J a + B v` and `dw = K a + C v` for the links, where B and C are linear in v, each matrix is a sum over
    the links:

        M = m J^T J + K^T I K
        V = 2 m J^T B v + 2 K^T (I C v + w x I w)
        D = m B^T B + C^T I C + 2 sym(C^T [w] I K) + (w . I w) K^T K

    `v^T D v` is unique, D is not: B and C are taken as half the derivatives of `B v` and `C v` with respect to v.
    """
    q, v = check_state(model, q=q, v=v)
    m = body_motions(model, q, v)
    bias = lambda v: (lambda m: (m.b, m.c))(body_motions(model, q, v))
    B, C = (slope / 2 for slope in jax.jacfwd(bias)(v))
    J, K = m.J, m.K
    IK, IC = m.inertia @ K, m.inertia @ C
    momentum = m.momentum(m.spin)
    dot = lambda x, y: jnp.einsum("jkm,jkn->mn", x, y)
    weighted = lambda x: m.mass[:, None, None] * x
    gyroscopic = jnp.cross(m.spin, momentum)
    mixed = dot(C, skew(m.spin) @ IK)
    energy = jnp.sum(m.spin * momentum, axis=1)[:, None, None]
    return AccelerationMatrices(
        dot(J, weighted(J)) + dot(K, IK) + jnp.diag(model.properties.armature),
        2 * ((dot(J, weighted(B)) + dot(K, IC)) @ v + jnp.einsum("jkn,jk->n", K, gyroscopic)),
        dot(B, weighted(B)) + dot(C, IC) + mixed + mixed.T + dot(K, energy * K),
    )


class GibbsAppell(AbstractFormulation):
    """`dE/da + Q_g + Q_su = tau` (39): the inertia forces are the gradient of the acceleration energy E.

    `Q_g` and `Q_su` are the generalised forces of gravity and of wrenches (25 to 28). At rest the gradient is `M a`,
    which yields the mass matrix column by column; at a = 0 it is the Coriolis and centrifugal force. Covers every model
    with a joint that moves.
    """

    def covers(self, model):
        return find_fixed_model(model)

    def mass_matrix(self, model, q):
        (q,) = self.checked(model, q)
        at_rest = body_motions(model, q)
        column = jax.grad(lambda a: _energy(model, at_rest, a))
        return jax.vmap(column)(jnp.eye(model.nv, dtype=q.dtype)).T

    def bias(self, model, q, v):
        q, v = self.checked(model, q, v)
        return self.inverse_dynamics(model, q, v, jnp.zeros_like(v))

    def inverse_dynamics(self, model, q, v, a, external=None):
        q, v, a = self.checked(model, q, v, a)
        m = body_motions(model, q, v)
        return jax.grad(lambda a: _energy(model, m, a))(a) + gravity_and_manipulating(model, m, external)
