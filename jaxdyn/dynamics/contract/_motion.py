"""The contract of a motion, which maps efforts and wrenches to accelerations."""

import abc

import equinox as eqx
from jaxtyping import Bool

from jaxdyn._types import Array, Float
from jaxdyn.dynamics.contract._part import Action
from jaxdyn.model import Model


class AbstractMotion(eqx.Module):
    """Contract of the equations of motion: accelerations under given efforts, with or without constraints."""

    #: True if `project` changes the state
    projects: eqx.AbstractVar[bool]
    #: whether the motion obeys constraints that the model does not describe
    adds_constraints: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def check(self, model: Model) -> None:
        """Raises `ModelError` if the motion cannot be computed for this model."""

    @abc.abstractmethod
    def acceleration(self, model: Model, t, q, v, effort, external) -> Float[Array, " nv"]:
        """Accelerations `(nv,)` under efforts `(nv,)` and wrenches `(links, 6)` or None."""

    @abc.abstractmethod
    def residual(self, model: Model, t, q, v, a, effort, external) -> Float[Array, " nv"]:
        """Residual of the equations of motion, zero at the accelerations, with a regular derivative in a."""

    @property
    @abc.abstractmethod
    def has_affine_residual(self) -> bool:
        """Whether `residual` is affine in accelerations and efforts, and cheaper than `acceleration`."""

    @abc.abstractmethod
    def velocity(self, model: Model, t, q, v) -> Float[Array, " nv"]:
        """The velocity `(nv,)` with which q is integrated: v, or v with a correction towards the constraints."""

    @abc.abstractmethod
    def project(self, model: Model, t, q, v) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """The state `(q, v)` projected onto the constraints; applied after each step."""

    @abc.abstractmethod
    def exerted(self, model: Model, t, q, v, effort, external) -> Action:
        """Efforts and wrenches of the constraints under the given efforts and wrenches."""

    @abc.abstractmethod
    def jump(self, model: Model, t, q, impulse) -> Float[Array, " nv"]:
        """Change of v, `(nv,)`, by an impulse on the velocity coordinates, `(nv,)` in N m s or N s."""

    @abc.abstractmethod
    def violates_constraints(self, model: Model, t, q, v) -> Bool[Array, ""]:
        """Whether a state violates the constraints, as when they contradict each other or the correction failed."""
