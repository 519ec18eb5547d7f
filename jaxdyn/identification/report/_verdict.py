"""`judge`: the verdict on an identified model, from explicit rules."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxdyn.identification.fitting import FitResult
from jaxdyn.identification.methods import FitStatus
from jaxdyn.identification.report._residuals import JointResidual

_GOOD_ERROR, _USABLE_ERROR = 0.1, 0.3  # relative error
_GOOD_RATIO, _USABLE_RATIO = 1.25, 2.0  # error on held-out data over that of the fit
_MAX_DEVIATION = 30.0  # relative standard deviation of a base parameter, %


@dataclass(frozen=True)
class Rule:
    """One rule of the verdict, and its grade for a fit."""

    name: str
    #: `good`, `fair`, `bad`, or `unknown` if the rule does not apply
    grade: str
    #: the value and its bounds
    finding: str


@dataclass(frozen=True)
class Verdict:
    """A summary sentence, and the rules behind it."""

    sentence: str
    rules: tuple[Rule, ...]

    @property
    def grade(self) -> str:
        """The worst grade of all rules."""
        grades = {rule.grade for rule in self.rules}
        return next((grade for grade in ("bad", "fair") if grade in grades), "good")


def median_error(residuals: Sequence[JointResidual]) -> float:
    """The median of the relative errors of all joints."""
    known = [r.relative for r in residuals if np.isfinite(r.relative)]
    return float(np.median(known)) if known else float("nan")


def unphysical_links(result: FitResult) -> list[str]:
    """Fitted links without physically consistent inertia; links that were not fitted are ignored."""
    fitted = {part for row in result.parameters for part in re.findall(r"[(\[]([^)\]]+)[)\]]", row.name)}
    return [check.link for check in result.physical if not check.physical and (check.link in fitted or not fitted)]


def judge(result: FitResult, fit: Sequence[JointResidual], held_out: Sequence[JointResidual]) -> Verdict:
    """Grades a fit by explicit rules; `report_on` calls it.

    A fit is bad if it did not converge, if a fitted link is not physically consistent, if no base parameter is
    determined, if the median relative error over the joints (on held-out data, if any) is above 0.3, or if the error on
    held-out data is more than twice that of the fit. It is fair if these two are above 0.1 or 1.25, if the error of a
    single joint is above 0.3, if more than a quarter of the base parameters have a relative standard deviation above
    30 %, or if the residuals are not white, which indicates unmodelled effects. Unidentifiable directions are named and
    do not affect the grade.

    Arguments:

    * `result`: the result of `fit`.
    * `fit`: residuals by joint on the logs of the fit, `FitReport.fit`.
    * `held_out`: residuals by joint on held-out data, `FitReport.held_out`; may be empty.

    Returns a `Verdict` with a sentence and the grade of each rule.

    ```python
    import jax
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.identification import Linear, Log, fit, judge, report_on

    robot = jd.robots.pendulum()
    t = jnp.linspace(0.0, 5.0, 200)
    q, v, a = (x[:, None] for x in (jnp.sin(2 * t), 2 * jnp.cos(2 * t), -4 * jnp.sin(2 * t)))
    effort = jax.vmap(lambda *x: jd.rnea(robot, *x))(q, v, a) + 0.1 * v
    log = Log(t, q, v, a, effort)
    result = fit(robot, log, "joints[*].damping", Linear())
    verdict = judge(result, report_on(result, [log]).fit, held_out=())
    for rule in verdict.rules:
        print(rule.grade, rule.name, rule.finding)
    ```
    """
    rules = (
        _convergence_rule(result),
        _physical_rule(result),
        _accuracy_rule(fit, held_out),
        _joints_rule(held_out or fit),
        _generality_rule(fit, held_out),
        _parameters_rule(result),
        _whiteness_rule(held_out or fit),
    )
    return Verdict(_write_sentence(rules, result, held_out), rules)


def _convergence_rule(result: FitResult) -> Rule:
    good = result.status == FitStatus.CONVERGED
    return Rule("convergence", "good" if good else "bad", f"{result.status.name} after {result.steps} steps")


def _physical_rule(result: FitResult) -> Rule:
    wrong = unphysical_links(result)
    if wrong:
        return Rule("physical links", "bad", f"not physically consistent: {', '.join(wrong[:8])}")
    before = [check.link for check in result.physical if not check.physical]
    note = f"; {', '.join(before[:8])} were inconsistent before and not fitted" if before else ""
    consistent = len(result.physical) - len(before)
    return Rule("physical links", "good", f"{consistent} links are physically consistent{note}")


def _accuracy_rule(fit, held_out) -> Rule:
    value = median_error(held_out or fit)
    where = "on held-out data" if held_out else "on the data of the fit, without held-out data"
    grade = "good" if value <= _GOOD_ERROR else "fair" if value <= _USABLE_ERROR else "bad"
    finding = f"median relative error {value:.4f} {where}; good up to {_GOOD_ERROR}, fair up to {_USABLE_ERROR}"
    return Rule("accuracy", grade, finding)


def _joints_rule(residuals: Sequence[JointResidual]) -> Rule:
    poor = [f"{r.joint} ({r.relative:.2f})" for r in residuals if not r.relative <= _USABLE_ERROR]
    if not poor:
        return Rule("single joints", "good", f"the relative error of every joint is below {_USABLE_ERROR}")
    return Rule("single joints", "fair", f"relative error above {_USABLE_ERROR} at {', '.join(poor[:8])}")


def _generality_rule(fit, held_out) -> Rule:
    if not held_out:
        return Rule("generality", "unknown", "no held-out data; hold out a run or a time interval")
    pairs = [(a.relative, b.relative) for a, b in zip(fit, held_out, strict=True) if a.relative > 0]
    ratio = float(np.median([b / a for a, b in pairs])) if pairs else 1.0
    grade = "good" if ratio <= _GOOD_RATIO else "fair" if ratio <= _USABLE_RATIO else "bad"
    finding = f"median ratio {ratio:.3g} of the errors on held-out data and in the fit; good up to {_GOOD_RATIO:g}"
    return Rule("generality", grade, finding)


def _parameters_rule(result: FitResult) -> Rule:
    """Grades base parameters, since single parameters are in general not identifiable."""
    if not result.parameters:
        return Rule("parameters", "unknown", "the method reports no parameters")
    if not result.base:
        return Rule("parameters", "bad", "the logs determine no base parameter of the selection")
    uncertain = [row.name for row in result.base if not row.relative <= _MAX_DEVIATION]
    brief = [name if len(name) <= 60 else f"{name[:57]}..." for name in uncertain[:5]]
    shown = f": {', '.join(brief)}{' ...' if len(uncertain) > 5 else ''}" if uncertain else ""
    finding = (
        f"{len(uncertain)} of {len(result.base)} base parameters have a relative standard deviation above "
        f"{_MAX_DEVIATION:g} %{shown}"
    )
    return Rule("parameters", "fair" if len(uncertain) > len(result.base) / 4 else "good", finding)


def _whiteness_rule(residuals: Sequence[JointResidual]) -> Rule:
    tested = [r for r in residuals if r.whiteness is not None]
    if not tested:
        return Rule("residuals", "unknown", "not tested: too few samples, or residuals of simulated windows")
    coloured = [r.joint for r in tested if r.whiteness is not None and not r.whiteness.white]
    if not coloured:
        return Rule("residuals", "good", f"white at all {len(tested)} joints (Ljung-Box, 1 %)")
    finding = (
        f"not white at {len(coloured)} of {len(tested)} joints (Ljung-Box, 1 %): unmodelled effects, which the "
        "standard deviations treat as noise"
    )
    return Rule("residuals", "fair", finding)


def _write_sentence(rules: Sequence[Rule], result: FitResult, held_out) -> str:
    grade = Verdict("", tuple(rules)).grade
    head = {
        "good": "This model can be trusted on motions like those of the logs",
        "fair": "This model can be used with care",
        "bad": "This model should not be used",
    }[grade]
    decisive = [rule for rule in rules if rule.grade == grade]
    reasons = "; ".join(f"{rule.name}: {rule.finding}" for rule in decisive)
    count = len(result.unobservable)
    directions = f" {count} direction{'s' * (count != 1)} of the parameters cannot be identified from these logs."
    caveat = "" if held_out else " Without held-out data, its accuracy on other motions is unknown."
    accuracy = next(rule.finding for rule in rules if rule.name == "accuracy").partition(";")[0]
    if grade == "fair":
        accuracy += f"; only fair: {', '.join(rule.name for rule in decisive)}"
    return f"{head} ({reasons if grade == 'bad' else accuracy}).{caveat}{directions if count else ''}"
