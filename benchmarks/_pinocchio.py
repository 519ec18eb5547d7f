"""Pinocchio in C++, one thread: reference values and times."""

import numpy as np
import pinocchio as pin

from benchmarks._export import links
from benchmarks._problems import FORWARD, JACOBIAN, MASS, RNEA, Problem, swapped_base
from benchmarks._timing import Effort, Row, measure

_ALIGNED = {(1, 0, 0): pin.JointModelRX, (0, 1, 0): pin.JointModelRY, (0, 0, 1): pin.JointModelRZ}
LOOP, CALL, LESS = "Pinocchio (C++ loop)", "Pinocchio (Python call)", "Pinocchio (less overhead)"


def build(model) -> pin.Model:
    """The same robot in Pinocchio, joints in the same order."""
    out = pin.Model()
    out.gravity.linear = np.asarray(model.gravity, float)
    where: dict[str | None, tuple[int, pin.SE3]] = {None: (0, pin.SE3.Identity())}
    for link in links(model):
        parent, offset = where[link.parent]
        place = offset * pin.SE3(link.rotation, link.translation)
        if link.free:
            joint = pin.JointModelFreeFlyer()
        elif link.axis is not None:
            kind = _ALIGNED.get(tuple(link.axis))
            joint = kind() if kind else pin.JointModelRevoluteUnaligned(link.axis)
        else:
            joint = None
        if joint is not None:
            parent, place = out.addJoint(parent, joint, place, link.joint), pin.SE3.Identity()
        out.appendBodyToJoint(parent, pin.Inertia(link.mass, link.com, link.inertia), place)
        where[link.name] = (parent, place)
    return out


class Reference:
    """A problem in Pinocchio's conventions (linear before angular, quaternion x y z w)."""

    def __init__(self, p: Problem):
        self.p = p
        self.model = build(p.model)
        self.data = self.model.createData()
        q = p.q
        if p.floating:
            q = np.concatenate([q[:, 4:7], q[:, 1:4], q[:, :1], q[:, 7:]], axis=1)
        swap = lambda x: swapped_base(x, p.floating)
        self.q, self.v, self.a, self.tau = q, swap(p.v), swap(p.a), swap(p.tau)

    def value(self, work: str, n: int):
        """Reference values of the first n samples, in the conventions of jaxdyn."""
        rows = [self._one(work, k) for k in range(n)]
        if work == JACOBIAN:
            return tuple(np.stack([row[i] for row in rows]) for i in range(3))
        return np.stack(rows)

    def _one(self, work: str, k: int):
        model, data, q, v, a, tau = self.model, self.data, self.q[k], self.v[k], self.a[k], self.tau[k]
        swap = lambda x: swapped_base(np.array(x), self.p.floating)  # a copy: results are views of `data`
        swap2 = lambda m: swapped_base(swap(m), self.p.floating, axis=0)
        if work == RNEA:
            return swap(pin.rnea(model, data, q, v, a))
        if work == MASS:
            m = np.triu(pin.crba(model, data, q))
            return swap2(m + np.triu(m, 1).T)
        if work == FORWARD:
            return swap(pin.aba(model, data, q, v, tau))
        by_q, by_v, by_tau = pin.computeABADerivatives(model, data, q, v, tau)
        upper = np.triu(by_tau)
        return swap2(by_q), swap2(by_v), swap2(upper + np.triu(upper, 1).T)

    def pool_call(self, work: str):
        """One call of Pinocchio's own loop over all samples, in C++."""
        pool = pin.ModelPool(self.model, 1)
        columns = lambda x: np.asfortranarray(x.T)
        run, last = (pin.rneaInParallel, self.a) if work == RNEA else (pin.abaInParallel, self.tau)
        q, v, last, out = columns(self.q), columns(self.v), columns(last), columns(self.v)
        return lambda: run(1, pool, q, v, last, out)

    def python_loop(self, work: str, n: int):
        """n calls from Python, each with the overhead of a call."""
        model, data = self.model, self.data
        run, last = {
            RNEA: (pin.rnea, self.a),
            FORWARD: (pin.aba, self.tau),
            JACOBIAN: (pin.computeABADerivatives, self.tau),
        }.get(work, (pin.crba, None))
        samples = [(self.q[k], self.v[k], last[k]) if last is not None else (self.q[k],) for k in range(n)]

        def call():
            for sample in samples:
                run(model, data, *sample)

        return call


def overhead(work: str, effort: Effort) -> float:
    """Microseconds that a call from Python costs: the same call on a robot of one joint."""
    from jaxdyn.robots import pendulum

    one = np.ones((256, 1))
    tiny = Reference(Problem("pendulum", pendulum(), one, one, one, one, np.ones(1)))
    return measure(tiny.python_loop(work, 256), 256, effort)[0]


def rows(p: Problem, effort: Effort) -> list[Row]:
    """Times of all four works; those without a loop in C++ are called from Python."""
    reference, out = Reference(p), []
    batch = len(p.q)
    for work in (RNEA, MASS, FORWARD, JACOBIAN):
        n = min(batch, 256)
        best, median = measure(reference.python_loop(work, n), n, effort)
        out.append(Row(p.name, work, "float64", 1, CALL, 0.0, best, median, 0.0))
        if work in (RNEA, FORWARD):
            best, median = measure(reference.pool_call(work), batch, effort)
            out.append(Row(p.name, work, "float64", batch, LOOP, 0.0, best, median, 0.0))
        else:
            cost = overhead(work, effort)
            out.append(Row(p.name, work, "float64", batch, LESS, 0.0, best - cost, median - cost, 0.0))
    return out
