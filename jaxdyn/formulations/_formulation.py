"""The contract of a formulation, and what all of them share."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import ModelError, check_shape
from jaxdyn._types import Array, Float
from jaxdyn.formulations._poses import poses
from jaxdyn.joints import AbstractJoint, has_vector_rate
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model


class AbstractFormulation(eqx.Module):
    """A classical route to the equations of motion `M(q) a + h(q, v) = tau + J^T external`.

    All formulations give the same numbers, those of `rnea`, `mass_matrix` and `forward_dynamics`; they differ in
    how they get there and in the robots that they cover. An instance can be passed as `forward_dynamics(...,
    method=)` and as `FreeMotion(method=)`. Frames, units and the role of the armatures are those of `rnea`.

    A formulation starts each of its methods with `checked`, which refuses what it does not cover.
    """

    @abc.abstractmethod
    def covers(self, model: Model) -> str | None:
        """None, or why this formulation does not cover the model, with the name of the joint or link at fault."""

    @abc.abstractmethod
    def mass_matrix(self, model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """`M(q)`, symmetric and positive definite, with the armatures on its diagonal."""

    @abc.abstractmethod
    def bias(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """`h(q, v)`: Coriolis, centrifugal and gravity terms together, N m or N."""

    @abc.abstractmethod
    def inverse_dynamics(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        a: Float[Array, " nv"],
        external: Float[Array, "links 6"] | None = None,
    ) -> Float[Array, " nv"]:
        """`tau = M(q) a + h(q, v) - sum J^T external`; wrenches as for `rnea`."""

    def __call__(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        tau: Float[Array, " nv"],
        external: Float[Array, "links 6"] | None = None,
    ) -> Float[Array, " nv"]:
        """Accelerations under the efforts tau, `a = M^-1 (tau - h + sum J^T external)`, by Cholesky's factors.

        All of them are NaN where M is not positive definite, as with bodies without inertia at the end of a chain;
        `simulate` then ends with the status `NOT_FINITE`.
        """
        q, v, tau = self.checked(model, q, v, tau)
        still = jnp.zeros_like(v)
        bias = self.bias(model, q, v) if external is None else self.inverse_dynamics(model, q, v, still, external)
        return cho_solve(cho_factor(self.mass_matrix(model, q)), tau - bias)

    def checked(self, model: Model, q, *rates) -> tuple:
        """q and rates (v, then a or tau) as arrays of the right shapes; raises for a model that is not covered."""
        reason = self.covers(model)
        if reason is not None:
            raise ModelError(
                f"{type(self).__name__} does not cover this model: {reason}. Use Lagrange(), which covers every "
                "model, or jaxdyn.rnea and jaxdyn.forward_dynamics without a method"
            )
        q = check_shape("q", q, (model.nq,))
        return (q, *(check_shape(n, x, (model.nv,)) for n, x in zip(("v", "a or tau"), rates, strict=False)))


def moving_joints(model: Model) -> list[tuple[str, AbstractJoint]]:
    """Names and stacked types of the joints that move."""
    t = model.topology
    return [(name, model.joints[g]) for name, g in zip(t.joint_names, t.groups, strict=True) if g >= 0]


def joints_beyond(model: Model, *kinds: type[AbstractJoint]) -> str | None:
    """The first joint that moves and is of none of these kinds, as a reason for `covers`; or the first mimic."""
    for joint, _ in model.topology.mimics:
        return f"joint {model.joint_names[joint]!r} mimics another"
    for name, joint in moving_joints(model):
        if not isinstance(joint, kinds):
            wanted = ", ".join(k.__name__ for k in kinds)
            return f"joint {name!r} is a {type(joint).__name__}, and only {wanted} are covered"
    return None


def no_coordinates_for_velocities(model: Model) -> str | None:
    """The first joint whose velocities are not the rates of its coordinates, as a reason for `covers`."""
    for name, joint in moving_joints(model):
        if not has_vector_rate(joint):
            return f"joint {name!r} is a {type(joint).__name__}, whose velocities are not the rates of its coordinates"
    return None


def not_serial(model: Model) -> str | None:
    """The first moving link that makes the robot branch, as a reason for `covers`."""
    t = model.topology
    for body, parent in enumerate(t.body_parents):
        if parent != body - 1:
            return (
                f"link {model.link_names[t.bodies[body]]!r} begins a second branch, and only serial chains are covered"
            )
    return None


def combined(mass, bias, a, external_effort):
    """`M a + h - J^T external`, for formulations that give M and h."""
    return mass @ a + bias - external_effort


def external_efforts(model: Model, q, external):
    """`sum J^T external`: the slope of the wrenches' power in the velocities; zero without wrenches."""
    if external is None or not model.nv:
        return jnp.zeros(model.nv, q.dtype)
    external = check_shape("external", external, (model.num_links, 6))
    still = jnp.zeros(model.nv, q.dtype)

    def power(v):
        turned, rate, _, velocity = link_motions(model, q, still, v)
        local = jnp.einsum("lji,lj->li", turned, velocity)
        return jnp.sum(external[:, :3] * angular_velocity(turned, rate)) + jnp.sum(external[:, 3:] * local)

    return jax.grad(power)(still)


def link_motions(model: Model, q, x, rate):
    """Rotations and positions of all links at the configuration reached from q by x, and the rates of both.

    x are exponential coordinates about q (`integrate`), `rate` their time derivative. At x = 0 the velocity of the
    robot is `v = rate` and its acceleration is the time derivative of `rate`, for every kind of joint.
    """

    moved = lambda x: poses(model, integrate(model, q, x))
    (rotation, position), (spin, velocity) = jax.jvp(moved, (x,), (rate,))
    return rotation, spin, position, velocity


def angular_velocity(rotation, rate):
    """`w = vee(R^T Rdot)`, in link axes, one row a link."""
    m = jnp.einsum("lji,ljk->lik", rotation, rate)
    return jnp.stack([m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]], axis=1) / 2
