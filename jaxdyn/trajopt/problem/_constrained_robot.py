"""Robots with constraints, whose motion and constraint forces are optimised together."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy.linalg import block_diag

from jaxdyn._errors import ModelError
from jaxdyn._types import Array, Float
from jaxdyn.constraints import AbstractConstraint
from jaxdyn.constraints.evaluation import (
    acceleration_bias,
    as_constraints,
    constraint_kinematics,
    constraint_residuals,
    holonomic_rows,
    linearise_constraints,
    row_slices,
)
from jaxdyn.dynamics import forward_dynamics, passive_forces, rnea
from jaxdyn.kinematics import neutral
from jaxdyn.model import Model
from jaxdyn.simulation import velocity_names
from jaxdyn.trajopt.problem._dynamics import (
    AbstractConstrainedDynamics,
    AbstractImplicit,
    AbstractLimitedDynamics,
    Constrained,
    DynamicsLimits,
)
from jaxdyn.trajopt.problem._robot import actuated_columns, check_coordinates, effort_limits, state_names


class ConstrainedRobot(AbstractConstrainedDynamics, AbstractLimitedDynamics, AbstractImplicit):
    """A robot with constraints, such as contact with a surface or closed loops.

    The state is `x = (q, v)`; the controls are the efforts followed by the Lagrange multipliers:

        M a + h = inputs tau + passive efforts + A^T lambda,    A a + gamma = 0,    g(q) = 0,    A v = b

    (McClamroch 1986, sections 3 to 5). Since the multipliers are controls, costs can weigh contact forces and bounds
    can limit them: a lower bound of zero makes a contact unilateral. With redundant constraints, such as a spatial
    closure of a planar mechanism, the controls are the coordinates of lambda in a basis of independent rows.

    ```python
    import jax.numpy as jnp

    import jaxdyn as jd
    import jaxdyn.constraints as jc
    from jaxdyn.trajopt import ConstrainedRobot


    def wall(p):
        return p[0] - 0.6


    contact = jc.OnSurface("wall", jc.End("tip", jnp.zeros(3)), wall)
    robot = ConstrainedRobot(jd.robots.double_pendulum(), contact)
    assert robot.control_names == ("upper_joint", "lower_joint", "wall.0")
    ```
    """

    model: Model
    constraints: tuple[AbstractConstraint, ...]
    #: map from efforts to generalised forces, `(nv, efforts)`
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
        constraints: AbstractConstraint | Sequence[AbstractConstraint],
        actuated: tuple[str, ...] | None = None,
        at: Float[Array, " nq"] | None = None,
        rank: int | None = None,
    ):
        """Arguments:

        * `model`, `constraints`: the robot, and one constraint or a sequence.
        * `actuated`: as for `Robot`.
        * `at`: configuration `(nq,)` at which the independent rows are selected; by default the neutral one.
        * `rank`: number of independent rows. Determined numerically for concrete models; required inside of `jax.jit`
          or `jax.vmap` for more than one row.

        Raises `ModelError` for a wrong `rank`, and for redundant nonholonomic constraints.
        """
        check_coordinates(model)
        self.model, self.constraints = model, as_constraints(constraints)
        columns = actuated_columns(model, actuated)
        self.inputs = jnp.asarray(np.eye(model.nv)[:, columns], model.dtype)
        self.basis = _basis(model, self.constraints, neutral(model) if at is None else jnp.asarray(at), rank)
        rank, rows = self.basis.shape
        holonomic = holonomic_rows(model, self.constraints)
        if rank < rows and not holonomic.all():
            raise ModelError("the nonholonomic constraints are redundant; leave out the dependent rows")
        self.num_forces, self.num_invariants = rank, rank + (rank if holonomic.all() else int(holonomic.sum()))
        self.state_names = state_names(model)
        slices = row_slices(model, self.constraints).items()
        row_names = [f"{name}.{k}" for name, s in slices for k in range(s.stop - s.start)]
        multipliers = row_names if rank == rows else [f"multiplier.{k}" for k in range(rank)]
        names = [name for name, _ in velocity_names(model)]
        self.control_names = (*(names[k] for k in columns), *multipliers)

    def multipliers(self, u):
        """The Lagrange multipliers, one per row of the constraints, from the controls u."""
        return self.basis.T @ u[self.inputs.shape[1] :]

    def rate(self, t, x, u):
        return self.constrained(t, x, u).rate

    def constrained(self, t, x, u):
        constraints = self._linearise(t, x)
        return self._outcome(constraints, self._acceleration(constraints, x, u))

    @property
    def has_cheap_residual(self) -> bool:
        return True

    @property
    def is_affine(self) -> bool:
        return True

    def limits(self):
        """DynamicsLimits of the joints; constraint forces have none."""
        joints, effort = self.model.limits, effort_limits(self.model, self.inputs)
        effort = jnp.concatenate([effort, jnp.full(self.num_forces, jnp.inf, effort.dtype)])
        lower = jnp.concatenate([joints.lower, -joints.velocity])
        upper = jnp.concatenate([joints.upper, joints.velocity])
        return DynamicsLimits(lower, upper, -effort, effort)

    def unknowns(self, t, x, u):
        return self._acceleration(self._linearise(t, x), x, u)

    def implicit(self, t, x, u, y):
        constraints = self._linearise(t, x)
        q, v = x[: self.model.nq], x[self.model.nq :]
        return self._outcome(constraints, y), rnea(self.model, q, v, y) - self._effort(constraints, x, u)

    def _linearise(self, t, x):
        """Constraint kinematics, Jacobian A and drift b at a state."""
        model = self.model
        at = constraint_kinematics(model, t, x[: model.nq], x[model.nq :])
        return at, *linearise_constraints(model, self.constraints, at)

    def _effort(self, constraints, x, u):
        passive = passive_forces(self.model, x[: self.model.nq], x[self.model.nq :])
        return self.inputs @ u[: self.inputs.shape[1]] + passive + constraints[1].T @ self.multipliers(u)

    def _acceleration(self, constraints, x, u):
        nq = self.model.nq
        return forward_dynamics(self.model, x[:nq], x[nq:], self._effort(constraints, x, u))

    def _outcome(self, constraints, a) -> Constrained:
        model, (at, jacobian, drift) = self.model, constraints
        forces = self.basis @ (jacobian @ a + acceleration_bias(model, self.constraints, at))
        holonomic = holonomic_rows(model, self.constraints)
        first = self.basis if holonomic.all() else jnp.eye(holonomic.size, dtype=a.dtype)[holonomic]
        position = first @ constraint_residuals(model, self.constraints, at)
        invariants = jnp.concatenate([position, self.basis @ (jacobian @ at.v - drift)])
        correction = block_diag(jacobian.T @ first.T, jacobian.T @ self.basis.T)
        return Constrained(jnp.concatenate([at.v, a]), forces, invariants, correction)


def _basis(model: Model, constraints, q, rank: int | None) -> Float[Array, "rank rows"]:
    """Basis of the row space of the Jacobian: all rows, or left singular vectors; without derivatives."""
    rows = holonomic_rows(model, constraints).size
    all_rows = jnp.eye(rows, dtype=model.dtype)
    if rows == 1 and rank is None:
        return all_rows
    at_rest = constraint_kinematics(model, 0.0, jax.lax.stop_gradient(q), jnp.zeros(model.nv, q.dtype))
    # without derivatives the value is concrete inside of jax.grad
    u, s, _ = jnp.linalg.svd(jax.lax.stop_gradient(linearise_constraints(model, constraints, at_rest)[0]))
    if not isinstance(s, Tracer):
        s = np.asarray(s)
        found = int((s > 1e-6 * max(s.max(initial=0), 1e-300)).sum())
        if rank not in (None, found):
            raise ModelError(
                f"rank={rank} is given, but {found} of {rows} constraint rows are independent at this configuration"
            )
        rank = found
    if rank is None:
        raise ModelError(
            f"the number of independent rows among {rows} cannot be determined from a traced model; pass "
            "rank=... to ConstrainedRobot (num_forces of a ConstrainedRobot that is made outside of jax.jit)"
        )
    return all_rows if rank == rows else u[:, :rank].T.astype(model.dtype)
