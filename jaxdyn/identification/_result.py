"""What a fit gives back."""

import enum
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxdyn._errors import ConvergenceError
from jaxdyn.model import Model
from jaxdyn.simulation import System


class FitStatus(enum.IntEnum):
    """How a fit ended."""

    #: a minimum was found within the tolerances
    CONVERGED = 0
    #: the number of steps reached `max_steps` before
    MAX_STEPS = 1
    #: no step reduces the cost although its gradient is not small
    STALLED = 2
    #: a residual or its derivative is not finite
    NOT_FINITE = 3


@dataclass(frozen=True)
class ParameterRow:
    """One parameter of a fit, in the unit of its leaf."""

    #: the leaf's path, such as `links[arm_3].mass`
    name: str
    unit: str
    #: before and after the fit
    prior: float
    value: float
    #: standard deviation, NaN where the logs say nothing about the parameter by itself
    deviation: float
    #: whether the logs determine it by itself; otherwise it is part of an unobservable direction
    observable: bool

    @property
    def relative(self) -> float:
        """Standard deviation over magnitude, in percent."""
        return 100 * self.deviation / abs(self.value) if self.value else float("inf")


@dataclass(frozen=True)
class BaseParameter:
    """A combination of parameters that the logs determine: `sum of coefficient * parameter`."""

    #: such as `Ixx(link2) - 0.5 m(link3)`
    name: str
    prior: float
    value: float
    #: standard deviation
    deviation: float

    @property
    def relative(self) -> float:
        """Standard deviation over magnitude, in percent."""
        return 100 * self.deviation / abs(self.value) if self.value else float("inf")


@dataclass(frozen=True)
class LinkCheck:
    """Whether a link's ten inertial parameters belong to a body."""

    link: str
    physical: bool
    #: least eigenvalue of the pseudo-inertia over its trace; not negative where a body exists
    margin: float
    #: what is wrong, empty where nothing is
    reason: str


@dataclass(frozen=True)
class JointError:
    """How well one joint's effort (or coordinate, for a fit of motions) is predicted."""

    joint: str
    unit: str
    #: root of the mean square of measured minus predicted
    fit: float
    #: the same over the logs held out, NaN without any
    held_out: float
    #: root of the mean square of what was measured over the logs of the fit, and over those held out
    measured: float
    measured_held_out: float


@dataclass(frozen=True)
class FitResult:
    """The identified robot, and what the logs say about each of its parameters."""

    #: the fitted model with its fitted parts
    system: System
    status: FitStatus
    steps: int
    #: half the weighted sum of squares (or of the robust loss), before and after
    initial_cost: float
    cost: float
    parameters: tuple[ParameterRow, ...]
    #: combinations that the logs determine, from the linear method's grouping
    base: tuple[BaseParameter, ...]
    #: directions of the parameters that no log shows, in words; left at the prior
    unobservable: tuple[str, ...]
    #: condition number of the scaled problem in the observable directions
    condition: float
    errors: tuple[JointError, ...]
    physical: tuple[LinkCheck, ...]
    #: covariance of the parameters, in the order of `parameters`
    covariance: np.ndarray = field(repr=False)
    #: the cost after each step
    history: tuple[float, ...] = field(repr=False, default=())
    #: samples for each one whose error is independent of the others, of each joint, by which deviations are widened
    dependence: tuple[float, ...] = ()
    #: the method that was used
    method: Any = None

    def __str__(self) -> str:
        """How the fit ended, the combinations that the logs determine with their deviations, and what they hide."""
        held = self.relative_error_held_out
        lines = [
            f"status: {self.status.name} after {self.steps} steps, cost {self.initial_cost:.6g} to {self.cost:.6g}",
            f"relative error {self.relative_error:.4g}" + (f", held out {held:.4g}" if np.isfinite(held) else ""),
            f"{len(self.base)} combinations of {len(self.parameters)} parameters are determined, condition "
            f"number {self.condition:.4g}",
        ]
        lines += [f"  {b.value:11.5g} +- {b.deviation:<9.2g} ({b.relative:.3g} %)  {b.name}" for b in self.base]
        if self.unobservable:
            lines.append(f"{len(self.unobservable)} directions cannot be seen, and stay at the prior")
            lines += [f"  {text}" for text in self.unobservable]
        wrong = [check.link for check in self.physical if not check.physical]
        lines.append(f"no body has the inertia of {', '.join(wrong)}" if wrong else "every link is a body")
        return "\n".join(lines)

    @property
    def model(self) -> Model:
        """The fitted model."""
        return self.system.model

    @property
    def relative_error(self) -> float:
        """`|measured - predicted| / |measured|` over all joints and logs of the fit."""
        return _ratio([e.fit for e in self.errors], [e.measured for e in self.errors])

    @property
    def relative_error_held_out(self) -> float:
        """The same over the logs held out, NaN without any."""
        return _ratio([e.held_out for e in self.errors], [e.measured_held_out for e in self.errors])

    @property
    def is_physical(self) -> bool:
        """Whether every link's inertia belongs to a body."""
        return all(check.physical for check in self.physical)

    def value(self, name: str) -> float:
        """The fitted value of the parameter called `name`."""
        for row in self.parameters:
            if row.name == name:
                return row.value
        shown = ", ".join(row.name for row in self.parameters[:8])
        raise KeyError(f"no parameter of this fit is called {name!r}; the first of them are {shown}")

    def checked(self) -> "FitResult":
        """This result, or `ConvergenceError` if the fit did not converge."""
        if self.status != FitStatus.CONVERGED:
            raise ConvergenceError(
                f"the fit ended with {self.status.name} after {self.steps} steps at a cost of {self.cost:.6g}; start "
                "nearer, raise max_steps, select fewer parameters or give a stronger prior"
            )
        return self


def _ratio(errors, scales) -> float:
    return float(np.sqrt(np.sum(np.square(errors)) / max(np.sum(np.square(scales)), 1e-300)))
