"""The cheapest step."""

from typing import ClassVar

import diffrax
import jax

from jaxdyn.simulation._state import State
from jaxdyn.simulation._term import MotionTerm


class SemiImplicitEuler(diffrax.AbstractSolver):
    """Velocity first, then the configuration with the new velocity: `v_1 = v_0 + h a(q_0, v_0)`, `q_1 = q_0 (+) h v_1`.

    First order, one evaluation a step. Where M is constant it is symplectic, and the energy error stays bounded over
    very long times (Hairer, Lubich and Wanner 2006, section VI.3); where M depends on q the energy may drift, and
    `Variational` is the solver that bounds it. It has no error estimate, so give `simulate` a step `dt`.
    """

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms):
        return 1

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        h = terms.contr(t0, t1)
        k = terms.prod(terms.vf(t0, y0, args), h)
        v = y0.v + k.v
        q = y0.q + k.q + MotionTerm().prod(k.v, h)
        parts = jax.tree.map(lambda x, dx: x + dx, y0.parts, k.parts)
        y1 = State(q, v, parts)
        return y1, None, {"y0": y0, "y1": y1}, None, diffrax.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)
