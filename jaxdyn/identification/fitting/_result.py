"""The result of a fit."""

from dataclasses import dataclass, field

import numpy as np

from jaxdyn._errors import ConvergenceError
from jaxdyn.identification.methods import AbstractMethod, FitStatus
from jaxdyn.identification.parameters import LinkCheck
from jaxdyn.model import Model
from jaxdyn.simulation import System


@dataclass(frozen=True)
class ParameterRow:
    """One parameter of a fit, in the unit of its leaf."""

    #: path of the leaf, such as `links[arm_3].mass`
    name: str
    unit: str
    #: values before and after the fit
    prior: float
    value: float
    #: standard deviation, NaN for parameters that are not individually identifiable
    deviation: float
    #: whether it is individually identifiable; otherwise it is part of an unobservable direction
    observable: bool

    @property
    def relative(self) -> float:
        """Standard deviation over magnitude, in percent."""
        return 100 * self.deviation / abs(self.value) if self.value else float("inf")


@dataclass(frozen=True)
class BaseParameter:
    """A base parameter: a linear combination of parameters that is identifiable from the logs."""

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
class JointError:
    """Prediction errors of one joint's effort, or of its coordinate for a fit of motion."""

    joint: str
    unit: str
    #: root mean square of measured minus predicted values over the fitted logs
    fit: float
    #: the same over the held-out logs, NaN without any
    held_out: float
    #: root mean squares of measured values over the fitted and over the held-out logs
    measured: float
    measured_held_out: float


@dataclass(frozen=True)
class FitResult:
    """The identified robot, and the precision of its parameters, as `fit` returns it.

    `print(result)` lists the status, the base parameters with their standard deviations and the unobservable
    directions; `report_on` makes a report.

    ```python
    import numpy as np
    import jaxdyn as jd
    from jaxdyn.identification import FitStatus, Log, fit

    t = np.linspace(0, 4, 100)[:, None]
    q, v, a = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
    log = Log(t[:, 0], q, v, a, effort=a + 9.81 * np.sin(q) + 0.3 * v)  # m = 1 kg, l = 1 m, damping 0.3
    result = fit(jd.robots.pendulum(), log, ["joints[*].damping"])
    assert result.status == FitStatus.CONVERGED and result.relative_error < 1e-3
    print(result.model.properties.damping, result.parameters[0].relative)  # the fitted robot; a deviation in percent
    ```
    """

    #: the fitted model with its fitted parts
    system: System
    status: FitStatus
    steps: int
    #: half the weighted sum of squares (or the sum of the robust loss) plus the prior, before and after the fit
    initial_cost: float
    cost: float
    parameters: tuple[ParameterRow, ...]
    #: identifiable combinations of the parameters, with their standard deviations
    base: tuple[BaseParameter, ...]
    #: unobservable directions of the parameters, in words, along which the estimate stays at the prior
    unobservable: tuple[str, ...]
    #: condition number of the regressor of the base parameters, with columns of norm one
    condition: float
    errors: tuple[JointError, ...]
    physical: tuple[LinkCheck, ...]
    #: covariance of the parameters, in the order of `parameters`
    covariance: np.ndarray = field(repr=False)
    #: the cost after each step
    history: tuple[float, ...] = field(repr=False, default=())
    #: autocorrelation time of the residual of each joint, samples for each independent one; deviations account for it
    dependence: tuple[float, ...] = ()
    #: the method that was used
    method: AbstractMethod | None = None

    def __str__(self) -> str:
        """Status, base parameters with their standard deviations, and unobservable directions."""
        held = self.relative_error_held_out
        lines = [
            f"status: {self.status.name} after {self.steps} steps, cost {self.initial_cost:.6g} to {self.cost:.6g}",
            f"relative error {self.relative_error:.4g}" + (f", held out {held:.4g}" if np.isfinite(held) else ""),
            f"{len(self.base)} base parameters of {len(self.parameters)} parameters, "
            f"condition number {self.condition:.4g}",
        ]
        lines += [f"  {b.value:11.5g} +- {b.deviation:<9.2g} ({b.relative:.3g} %)  {b.name}" for b in self.base]
        if self.unobservable:
            lines.append(f"{len(self.unobservable)} unobservable directions, in which parameters stay at the prior")
            lines += [f"  {text}" for text in self.unobservable]
        wrong = [check.link for check in self.physical if not check.physical]
        lines.append(
            f"not physically consistent: {', '.join(wrong)}" if wrong else "all links are physically consistent"
        )
        return "\n".join(lines)

    @property
    def model(self) -> Model:
        """The fitted model."""
        return self.system.model

    @property
    def relative_error(self) -> float:
        """`|measured - predicted| / |measured|` over all joints and fitted logs."""
        return _ratio([e.fit for e in self.errors], [e.measured for e in self.errors])

    @property
    def relative_error_held_out(self) -> float:
        """The same over the held-out logs, NaN without any."""
        return _ratio([e.held_out for e in self.errors], [e.measured_held_out for e in self.errors])

    @property
    def is_physical(self) -> bool:
        """Whether all links are physically consistent."""
        return all(check.physical for check in self.physical)

    def value(self, name: str) -> float:
        """The fitted value of the parameter called `name`."""
        for row in self.parameters:
            if row.name == name:
                return row.value
        first = ", ".join(row.name for row in self.parameters[:8])
        raise KeyError(f"no parameter of this fit is called {name!r}; the first ones are {first}")

    def checked(self) -> "FitResult":
        """This result, or `ConvergenceError` if the fit did not converge."""
        if self.status != FitStatus.CONVERGED:
            raise ConvergenceError(
                f"the fit ended with {self.status.name} after {self.steps} steps at a cost of {self.cost:.6g}; give a "
                "better initial model, more max_steps, fewer parameters or a stronger prior"
            )
        return self


def _ratio(errors: list[float], scales: list[float]) -> float:
    return float(np.sqrt(np.sum(np.square(errors)) / max(np.sum(np.square(scales)), 1e-300)))
