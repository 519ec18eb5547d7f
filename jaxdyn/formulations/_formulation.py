"""The contract of a formulation, and functions that the formulations share."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.formulations._poses import poses
from jaxdyn.joints import AbstractJoint, has_vector_rate
from jaxdyn.kinematics import integrate
from jaxdyn.model import Model
from jaxdyn.recursion import check_state, check_wrenches


class AbstractFormulation(eqx.Module):
    """Contract of a formulation of the equations of motion `M(q) a + h(q, v) = tau + J^T external`.

    All formulations agree with `rnea`, `mass_matrix` and `forward_dynamics` to rounding; they differ in their
    derivation, their cost and the models that they cover. Pass an instance as `forward_dynamics(..., method=)` or
    `FreeMotion(method=)`. Frames, units and armatures are those of `rnea`.

    Implementations call `checked` first in each method; it raises `ModelError` for a model that they do not cover.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.formulations import PlanarChain

    model = jd.robots.double_pendulum()
    method, q, v = PlanarChain(), jnp.array([0.1, 0.2]), jnp.array([0.5, -0.5])
    h = method.bias(model, q, v)
    a = jd.forward_dynamics(model, q, v, jnp.zeros(2), method=method)
    ```
    """

    @abc.abstractmethod
    def covers(self, model: Model) -> str | None:
        """None if the formulation covers the model; otherwise the reason, with the name of the joint or link."""

    @abc.abstractmethod
    def mass_matrix(self, model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """`M(q)`, symmetric and positive definite, with the armatures on its diagonal."""

    @abc.abstractmethod
    def bias(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """`h(q, v)`: Coriolis, centrifugal and gravity terms, N m or N."""

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
        """Accelerations under the efforts tau, `a = M^-1 (tau - h + sum J^T external)`, by Cholesky factorisation.

        All of them are NaN if M is not positive definite, as for bodies without inertia at the end of a chain;
        `simulate` then ends with the status `NOT_FINITE`.
        """
        q, v, tau = self.checked(model, q, v, tau)
        zero = jnp.zeros_like(v)
        bias = self.bias(model, q, v) if external is None else self.inverse_dynamics(model, q, v, zero, external)
        return cho_solve(cho_factor(self.mass_matrix(model, q)), tau - bias)

    def checked(self, model: Model, q, *rates) -> tuple:
        """Returns q and rates (v, then a or tau) with checked shapes; raises for a model that is not covered."""
        reason = self.covers(model)
        if reason is not None:
            raise ModelError(
                f"{type(self).__name__} does not cover this model: {reason}. Use Lagrange(), which covers every "
                "model, or jaxdyn.rnea and jaxdyn.forward_dynamics without a method"
            )
        return check_state(model, q=q, **dict(zip(("v", "a or tau"), rates, strict=False)))


def moving_joints(model: Model) -> list[tuple[str, AbstractJoint]]:
    """Names and stacked joints of all joints that move."""
    t = model.topology
    return [(name, model.joints[g]) for name, g in zip(t.joint_names, t.groups, strict=True) if g >= 0]


def find_unsupported_joint(model: Model, *kinds: type[AbstractJoint]) -> str | None:
    """The reason, for `covers`, if a joint mimics another or is of none of these types; otherwise None."""
    for joint, _ in model.topology.mimics:
        return f"joint {model.joint_names[joint]!r} mimics another"
    for name, joint in moving_joints(model):
        if not isinstance(joint, kinds):
            expected = ", ".join(k.__name__ for k in kinds)
            return f"joint {name!r} is a {type(joint).__name__}, and only {expected} are covered"
    return None


def find_quasi_velocity_joint(model: Model) -> str | None:
    """The reason, for `covers`, if the velocities of a joint are not the rates of its coordinates; otherwise None."""
    for name, joint in moving_joints(model):
        if not has_vector_rate(joint):
            return f"joint {name!r} is a {type(joint).__name__}, whose velocities are not the rates of its coordinates"
    return None


def find_branching_link(model: Model) -> str | None:
    """The reason, for `covers`, if the robot is no serial chain, with the link of the second branch; otherwise None."""
    t = model.topology
    for body, parent in enumerate(t.body_parents):
        if parent != body - 1:
            return (
                f"link {model.link_names[t.bodies[body]]!r} begins a second branch, and only serial chains are covered"
            )
    return None


def combine_terms(mass, bias, a, external_effort):
    """`M a + h - J^T external`, for formulations that compute M and h."""
    return mass @ a + bias - external_effort


def external_efforts(model: Model, q, external):
    """`sum J^T external`: the gradient of the power of the wrenches with respect to v; zero without wrenches."""
    if external is None or not model.nv:
        return jnp.zeros(model.nv, q.dtype)
    external = check_wrenches(model, external)
    zero = jnp.zeros(model.nv, q.dtype)

    def power(v):
        rotation, spin, _, velocity = link_poses_and_rates(model, q, zero, v)
        local = jnp.einsum("lji,lj->li", rotation, velocity)
        return jnp.sum(external[:, :3] * angular_velocity(rotation, spin)) + jnp.sum(external[:, 3:] * local)

    return jax.grad(power)(zero)


def link_poses_and_rates(model: Model, q, x, rate):
    """Rotations and positions of all links at `integrate(q, x)`, as `(R, Rdot, p, pdot)`.

    x are exponential coordinates about q, `rate` their time derivative. At x = 0 the velocity of the robot is
    `v = rate` and its acceleration is the time derivative of `rate`, for every type of joint.
    """

    displaced = lambda x: poses(model, integrate(model, q, x))
    (rotation, position), (spin, velocity) = jax.jvp(displaced, (x,), (rate,))
    return rotation, spin, position, velocity


def angular_velocity(rotation, rate):
    """`w = vee(R^T Rdot)` of each link, in link axes."""
    m = jnp.einsum("lji,ljk->lik", rotation, rate)
    return jnp.stack([m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]], axis=1) / 2
