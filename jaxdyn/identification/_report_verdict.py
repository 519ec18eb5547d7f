"""Whether an identified model can be trusted, by rules that are written down."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxdyn.identification._report_residuals import JointResidual
from jaxdyn.identification._result import FitResult, FitStatus

_GOOD, _USABLE = 0.1, 0.3  # relative error
_SIMILAR, _WORSE = 1.25, 2.0  # error on what was held out over that of the fit
_VAGUE = 30.0  # relative deviation of a parameter, %


@dataclass(frozen=True)
class Rule:
    """One rule of the verdict, and how the fit stands by it."""

    name: str
    #: `good`, `fair`, `bad`, or `unknown` where it cannot be judged
    grade: str
    #: figures, and the bounds that they were compared to
    finding: str


@dataclass(frozen=True)
class Verdict:
    """A sentence, and the rules that led to it."""

    sentence: str
    rules: tuple[Rule, ...]

    @property
    def grade(self) -> str:
        """The worst grade of the rules that were judged."""
        grades = {rule.grade for rule in self.rules}
        return next((grade for grade in ("bad", "fair") if grade in grades), "good")


def usual(residuals: Sequence[JointResidual]) -> float:
    """The relative error of the middle joint: half of the joints are predicted better."""
    known = [r.relative for r in residuals if np.isfinite(r.relative)]
    return float(np.median(known)) if known else float("nan")


def unphysical_links(result: FitResult) -> list[str]:
    """Links that no body can be and whose numbers the fit has changed; what it left alone is not its fault."""
    touched = {part for row in result.parameters for part in re.findall(r"[(\[]([^)\]]+)[)\]]", row.name)}
    return [check.link for check in result.physical if not check.physical and (check.link in touched or not touched)]


def judge(result: FitResult, fit: Sequence[JointResidual], held_out: Sequence[JointResidual]) -> Verdict:
    """The verdict on a fit.

    Bad is a fit that did not converge, a fitted link that no body can be, a relative error of the middle joint (of
    what was held out, if anything was) beyond 0.3, or an error on what was held out of more than twice that of the fit.
    Fair are errors beyond 0.1 and 1.25 times, single joints beyond 0.3, more than a quarter of the determined
    combinations of parameters with deviations beyond 30 %, and residuals that are not white, since something is then
    not modelled. Directions that no log shows are named, and cost nothing.
    """
    rules = (
        _converged(result),
        _physical(result),
        _accurate(fit, held_out),
        _single(held_out or fit),
        _general(fit, held_out),
        _determined(result),
        _white(held_out or fit),
    )
    return Verdict(_sentence(rules, result, held_out), rules)


def _converged(result: FitResult) -> Rule:
    good = result.status == FitStatus.CONVERGED
    return Rule("convergence", "good" if good else "bad", f"{result.status.name} after {result.steps} steps")


def _physical(result: FitResult) -> Rule:
    wrong = unphysical_links(result)
    if wrong:
        return Rule("physical links", "bad", f"no body has the inertia of {', '.join(wrong[:8])}")
    before = [check.link for check in result.physical if not check.physical]
    note = f"; {', '.join(before[:8])} had none before and were not fitted" if before else ""
    return Rule(
        "physical links", "good", f"{len(result.physical) - len(before)} links have the inertia of a body{note}"
    )


def _accurate(fit, held_out) -> Rule:
    value = usual(held_out or fit)
    where = "on what was held out" if held_out else "on the logs of the fit, nothing was held out"
    grade = "good" if value <= _GOOD else "fair" if value <= _USABLE else "bad"
    finding = f"relative error {value:.4f} of the middle joint {where}; good up to {_GOOD}, usable up to {_USABLE}"
    return Rule("accuracy", grade, finding)


def _single(residuals: Sequence[JointResidual]) -> Rule:
    poor = [f"{r.joint} ({r.relative:.2f})" for r in residuals if not r.relative <= _USABLE]
    if not poor:
        return Rule("single joints", "good", f"the relative error of every joint is below {_USABLE}")
    return Rule("single joints", "fair", f"relative error beyond {_USABLE} at {', '.join(poor[:8])}")


def _general(fit, held_out) -> Rule:
    if not held_out:
        return Rule("generality", "unknown", "nothing was held out; hold out a run or a block of time")
    pairs = [(a.relative, b.relative) for a, b in zip(fit, held_out, strict=True) if a.relative > 0]
    ratio = float(np.median([b / a for a, b in pairs])) if pairs else 1.0
    grade = "good" if ratio <= _SIMILAR else "fair" if ratio <= _WORSE else "bad"
    finding = f"error held out {ratio:.3g} times that of the fit at the middle joint; good up to {_SIMILAR:g}"
    return Rule("generality", grade, finding)


def _determined(result: FitResult) -> Rule:
    """The combinations that the logs determine: single parameters may all be parts of them."""
    if not result.parameters:
        return Rule("parameters", "unknown", "the method states no parameters")
    if not result.base:
        return Rule("parameters", "bad", "the logs determine none of the selected parameters")
    vague = [row.name for row in result.base if not row.relative <= _VAGUE]
    brief = [name if len(name) <= 60 else f"{name[:57]}..." for name in vague[:5]]
    shown = f": {', '.join(brief)}{' ...' if len(vague) > 5 else ''}" if vague else ""
    finding = (
        f"{len(vague)} of {len(result.base)} determined combinations of parameters deviate by more than "
        f"{_VAGUE:g} %{shown}"
    )
    return Rule("parameters", "fair" if len(vague) > len(result.base) / 4 else "good", finding)


def _white(residuals: Sequence[JointResidual]) -> Rule:
    tested = [r for r in residuals if r.whiteness is not None]
    if not tested:
        return Rule("residuals", "unknown", "no test: too few samples, or errors that grow along windows of simulation")
    coloured = [r.joint for r in tested if r.whiteness is not None and not r.whiteness.white]
    if not coloured:
        return Rule("residuals", "good", f"white at all {len(tested)} joints (Ljung-Box, 1 %)")
    finding = (
        f"not white at {len(coloured)} of {len(tested)} joints: something is not modelled, which deviations count as "
        "noise"
    )
    return Rule("residuals", "fair", finding)


def _sentence(rules: Sequence[Rule], result: FitResult, held_out) -> str:
    grade = Verdict("", tuple(rules)).grade
    head = {
        "good": "This model can be trusted on motions like those of the logs",
        "fair": "This model can be used with care",
        "bad": "This model should not be used",
    }[grade]
    at = [rule for rule in rules if rule.grade == grade]
    reasons = "; ".join(f"{rule.name}: {rule.finding}" for rule in at)
    unseen = len(result.unobservable)
    tail = f" {unseen} direction{'s' * (unseen != 1)} of the parameters cannot be seen in these logs." if unseen else ""
    where = "" if held_out else " Nothing was held out, so it is not known how it does on other motions."
    accuracy = next(rule.finding for rule in rules if rule.name == "accuracy").partition(";")[0]
    if grade == "fair":
        accuracy += f"; only fair: {', '.join(rule.name for rule in at)}"
    return f"{head} ({reasons if grade == 'bad' else accuracy}).{where}{tail}"
