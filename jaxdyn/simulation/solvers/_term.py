"""The equations of motion as a term of diffrax."""

import diffrax
import jax

from jaxdyn.kinematics import difference, integrate
from jaxdyn.simulation.system import State, in_modes, underlying_state


def scale_rate(rate, dt):
    """`rate * dt`, leaf by leaf."""
    return jax.tree.map(lambda x: x * dt.astype(x.dtype), rate)


class MotionTerm(diffrax.AbstractTerm):
    """`d/dt (q, v, x) = (v, a, xdot)`, with the `System` as argument.

    Like `diffrax.ODETerm`, except that the rate of q is the velocity, whose size may differ from that of q.
    """

    def vf(self, t, y, args):
        system = in_modes(args, getattr(y, "modes", None))  # between steps the state has the modes of the motion
        return system.rate(t, underlying_state(args, y))

    def contr(self, t0, t1, **kwargs):
        return t1 - t0

    def prod(self, vf, control):
        return scale_rate(vf, control)


class ChartTerm(diffrax.AbstractTerm):
    """The equations of motion in the chart `q = base (+) x`: the rate of x follows from q and its velocity."""

    term: diffrax.AbstractTerm
    base: jax.Array

    def vf(self, t, y, args):
        model = args.model
        q = integrate(model, self.base, y.q)
        rate = self.term.vf(t, State(q, y.v, y.parts), args)
        to_chart = lambda step: difference(model, self.base, integrate(model, q, step))
        zero = jax.numpy.zeros_like(rate.q)
        return State(jax.jvp(to_chart, (zero,), (rate.q,))[1], rate.v, rate.parts)

    def contr(self, t0, t1, **kwargs):
        return self.term.contr(t0, t1, **kwargs)

    def prod(self, vf, control):
        return scale_rate(vf, control)
