"""The semi-implicit Euler method."""

from typing import ClassVar

import diffrax
import jax

from jaxdyn.simulation.solvers._term import MotionTerm
from jaxdyn.simulation.system import State


class SemiImplicitEuler(diffrax.AbstractSolver):
    """Velocity first, then the configuration with the new velocity: `v_1 = v_0 + h a(q_0, v_0)`, `q_1 = q_0 (+) h v_1`.

    First order, one evaluation of the accelerations per step. Where M is constant the method is symplectic, and the
    energy error stays bounded over very long times (Hairer, Lubich and Wanner 2006, section VI.3). Where M depends on q
    the energy drifts over long times; `Variational` bounds the error. There is no error estimate, so give `simulate` a
    step `dt`.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import SemiImplicitEuler

    pendulum = jd.robots.pendulum()
    ts = jnp.array([0.0, 100.0])
    path = jd.simulate(pendulum, jnp.array([1.0]), jnp.zeros(1), ts, dt=1e-2, solver=SemiImplicitEuler())
    assert abs(path.energy[-1] - path.energy[0]) < 0.1  # J, after 10,000 steps
    ```
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
