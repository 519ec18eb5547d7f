"""Robots under constraints, whose motion and contact forces are planned together."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.linalg import block_diag

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.constraints._contract import AbstractConstraint
from jaxdyn.constraints._evaluate import (
    as_constraints,
    bias,
    evaluated,
    holonomic_rows,
    linearised,
    residuals,
    row_slices,
)
from jaxdyn.dynamics import forward_dynamics, passive_forces, rnea
from jaxdyn.kinematics import neutral
from jaxdyn.model import Model
from jaxdyn.simulation import velocity_names
from jaxdyn.trajopt._problem_dynamics import (
    AbstractConstrainedDynamics,
    AbstractImplicit,
    Constrained,
    _check_coordinates,
    actuated_columns,
    state_names,
)


class ConstrainedRobot(AbstractConstrainedDynamics, AbstractImplicit):
    """A robot on a surface or with closed loops: `x = (q, v)`, controls are efforts and then multipliers.

        M a + h = inputs tau + passive efforts + A^T lambda,    A a + gamma = 0,    g(q) = 0,    A v = b

    (McClamroch 1986, sections 3 to 5). As the multipliers are among the controls, costs may weigh contact forces,
    and bounds keep them within limits: a lower bound of zero makes a contact one-sided. Where rows depend on each
    other, as those of a spatial loop of a planar mechanism do, lambda is kept in the space of the independent ones.
    """

    model: Model
    constraints: tuple[AbstractConstraint, ...]
    #: how efforts act on the velocity coordinates, `(nv, efforts)`
    inputs: Float[Array, "*batch nv efforts"]
    #: independent combinations of the rows, `(rank, rows)`
    basis: Float[Array, "*batch rank rows"]
    state_names: tuple[str, ...] = eqx.field(static=True)
    control_names: tuple[str, ...] = eqx.field(static=True)
    num_forces: int = eqx.field(static=True)
    num_invariants: int = eqx.field(static=True)

    def __init__(
        self,
        model: Model,
        constraints: Any,
        actuated: tuple[str, ...] | None = None,
        at: Any = None,
        rank: int | None = None,
    ):
        """`actuated` as for `Robot`; `at` is a configuration in which independent rows are told from dependent ones, by
        default the neutral one. `rank` is how many are independent: found there from concrete numbers; inside of
        `jax.jit` or `jax.vmap`, where a model of several rows has none, it is to be given."""
        _check_coordinates(model)
        self.model, self.constraints = model, as_constraints(constraints)
        columns = actuated_columns(model, actuated)
        self.inputs = jnp.asarray(np.eye(model.nv)[:, columns], model.dtype)
        self.basis = _basis(model, self.constraints, neutral(model) if at is None else jnp.asarray(at), rank)
        rank, rows = self.basis.shape
        holonomic = holonomic_rows(model, self.constraints)
        if rank < rows and not holonomic.all():
            raise ModelError("rows of nonholonomic constraints depend on others here; leave out the dependent ones")
        self.num_forces, self.num_invariants = rank, rank + (rank if holonomic.all() else int(holonomic.sum()))
        self.state_names = state_names(model)
        slices = row_slices(model, self.constraints).items()
        of_rows = [f"{name}.{k}" for name, s in slices for k in range(s.stop - s.start)]
        multipliers = of_rows if rank == rows else [f"multiplier.{k}" for k in range(rank)]
        names = [name for name, _ in velocity_names(model)]
        self.control_names = (*(names[k] for k in columns), *multipliers)

    def multipliers(self, u):
        """`lambda`, one a row of the constraints, out of the controls."""
        return self.basis.T @ u[self.inputs.shape[1] :]

    def rate(self, t, x, u):
        return self.constrained(t, x, u).rate

    def constrained(self, t, x, u):
        placed = self._placed(t, x)
        return self._outcome(placed, self._acceleration(placed, x, u))

    @property
    def affine(self) -> bool:
        return True

    def unknowns(self, t, x, u):
        return self._acceleration(self._placed(t, x), x, u)

    def implicit(self, t, x, u, y):
        placed = self._placed(t, x)
        q, v = x[: self.model.nq], x[self.model.nq :]
        return self._outcome(placed, y), rnea(self.model, q, v, y) - self._effort(placed, x, u)

    def _placed(self, t, x):
        """A state with all that constraints need of it, and their Jacobian and drift there."""
        model = self.model
        at = evaluated(model, t, x[: model.nq], x[model.nq :])
        return at, *linearised(model, self.constraints, at)

    def _effort(self, placed, x, u):
        passive = passive_forces(self.model, x[: self.model.nq], x[self.model.nq :])
        return self.inputs @ u[: self.inputs.shape[1]] + passive + placed[1].T @ self.multipliers(u)

    def _acceleration(self, placed, x, u):
        nq = self.model.nq
        return forward_dynamics(self.model, x[:nq], x[nq:], self._effort(placed, x, u))

    def _outcome(self, placed, a) -> Constrained:
        model, (at, jacobian, drift) = self.model, placed
        forces = self.basis @ (jacobian @ a + bias(model, self.constraints, at))
        holonomic = holonomic_rows(model, self.constraints)
        first = self.basis if holonomic.all() else jnp.eye(holonomic.size, dtype=a.dtype)[holonomic]
        position = first @ residuals(model, self.constraints, at)
        invariants = jnp.concatenate([position, self.basis @ (jacobian @ at.v - drift)])
        correction = block_diag(jacobian.T @ first.T, jacobian.T @ self.basis.T)
        return Constrained(jnp.concatenate([at.v, a]), forces, invariants, correction)


def _basis(model: Model, constraints, q, rank: int | None) -> Any:
    """Rows that span those of the Jacobian: all of them, or left singular vectors; constant to differentiation."""
    rows = holonomic_rows(model, constraints).size
    whole = jnp.eye(rows, dtype=model.dtype)
    if rows == 1 and rank is None:
        return whole
    still = evaluated(model, 0.0, jax.lax.stop_gradient(q), jnp.zeros(model.nv, q.dtype))
    # the value alone, which is concrete inside of jax.grad
    u, s, _ = jnp.linalg.svd(jax.lax.stop_gradient(linearised(model, constraints, still)[0]))
    if not isinstance(s, Tracer):
        s = np.asarray(s)
        found = int((s > 1e-6 * max(s.max(initial=0), 1e-300)).sum())
        if rank not in (None, found):
            raise ModelError(f"rank={rank} is given, but {found} of {rows} rows of constraints are independent here")
        rank = found
    if rank is None:
        raise ModelError(
            f"which of {rows} rows of constraints are independent cannot be seen from a model that is traced; give "
            "ConstrainedRobot their number, rank=..., which is num_forces of one made outside of jax.jit"
        )
    return whole if rank == rows else u[:, :rank].T.astype(model.dtype)
