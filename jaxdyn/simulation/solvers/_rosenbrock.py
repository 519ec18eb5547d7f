"""A linearly implicit solver for stiff drives, dampers and springs."""

from typing import ClassVar

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxdyn._numerics import invert

#: L-stable; the other root of `gamma^2 - 2 gamma + 1/2` has error constants three times as large
_GAMMA = 1 - 1 / np.sqrt(2)


class Rosenbrock(diffrax.AbstractAdaptiveSolver):
    """The L-stable Rosenbrock method of second order with two stages, for stiff parts.

        (1 - gamma h J) k_1 = f(t, y),    (1 - gamma h J) k_2 = f(t + h, y + h k_1) - 2 k_1
        y_1 = y + h (3 k_1 + k_2) / 2,    gamma = 1 - 1 / sqrt(2)

    J is the derivative of the vector field with respect to configuration, velocity and the states of all parts, exact
    by forward mode. A step solves one linear system and iterates nothing, so stiff gains, dampers, springs, motors
    and transmissions stay stable at steps that explicit methods cannot make: where `d_max` is the fastest rate, these
    need `h < 2 / d_max`. The difference to the result of first order is the error estimate of adaptive steps.

    Verwer, Spee, Blom and Hundsdorfer 1999, "A second-order Rosenbrock method applied to photochemical dispersion
    problems", SIAM Journal on Scientific Computing 20; Hairer and Wanner 1996, section IV.7.

    ```python
    import jax.numpy as jnp
    import jaxdyn as jd
    from jaxdyn.simulation import Feedback, Rosenbrock


    def stiff(t, q, v):
        return -1e4 * q - 1e3 * v


    system = jd.System(jd.robots.pendulum(), (Feedback(stiff),))
    path = jd.simulate(system, jnp.array([0.5]), jnp.zeros(1), jnp.array([0.0, 1.0]), dt=0.02, solver=Rosenbrock())
    assert abs(path.q[-1, 0]) < 1e-3
    ```
    """

    term_structure: ClassVar = diffrax.AbstractTerm
    interpolation_cls: ClassVar = diffrax.LocalLinearInterpolation

    def order(self, terms):
        return 2

    def init(self, terms, t0, t1, y0, args):
        return None

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        h = terms.contr(t0, t1)
        start, unravel = ravel_pytree(y0)

        def rate(t, y):
            return ravel_pytree(terms.vf(t, unravel(y), args))[0]

        f, push = jax.linearize(lambda y: rate(t0, y), start)
        one = jnp.eye(start.size, dtype=start.dtype)
        implicit = invert(one - (_GAMMA * h).astype(start.dtype) * jax.vmap(push, out_axes=1)(one))
        k1 = implicit @ f
        k2 = implicit @ (rate(t1, start + h * k1) - 2 * k1)
        end = start + h * (1.5 * k1 + 0.5 * k2)
        y1 = unravel(end)
        return y1, unravel(0.5 * h * (k1 + k2)), {"y0": y0, "y1": y1}, None, diffrax.RESULTS.successful

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)
