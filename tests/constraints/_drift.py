"""Drift of long simulations of closed mechanisms off their constraints, at the ends of steps."""

import functools as ft

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
import jaxdyn.constraints as jc
from jaxdyn.constraints import evaluation as ev
from jaxdyn.dynamics import AbstractSampledPart, Action
from jaxdyn.simulation import System

LINKAGES = ("four_bar", "five_bar", "slider_crank", "delta")


class Recorder(AbstractSampledPart):
    """Records the state at the end of a step every half second. Saved states are projected again; these are not."""

    period: float = 0.5
    delay: float = 0.0

    def initial(self, model, q, v):
        return q, v

    def sample(self, model, t, q, v, state):
        return q, v

    def act(self, model, t, q, v, state):
        return Action()


@jax.jit
def measure_drift(model, constraints, states):
    """The largest residual and rate, the kinetic energy and the total energy of each state.

    Sequential, since a program for all states at once takes longer to compile than this one to run.
    """

    def one(state):
        x = ev.constraint_kinematics(model, 0.0, *state)
        largest = [jnp.abs(f(model, constraints, x)).max() for f in (ev.constraint_residuals, ev.constraint_rates)]
        kinetic = jd.kinetic_energy(model, *state)
        return (*largest, kinetic, kinetic + jd.potential_energy(model, state[0]))

    return jax.lax.map(one, states)


def state_errors(model, constraints, q, v):
    """Largest residual and largest rate of each state."""
    return measure_drift(model, constraints, (q, v))[:2]


def simulate_drift(names, seconds: int) -> dict:
    """Largest errors and change of energy of mechanisms simulated side by side, with all defaults.

    The energy is relative to the largest kinetic energy during the motion.
    """
    robot = lambda name: getattr(jd.robots, name)()
    model = ft.reduce(lambda a, name: jd.merge(a, robot(name), prefix=f"{name}_"), names[1:], robot(names[0]))
    loops = jc.described_constraints(model)
    q = jd.neutral(model)
    v = jax.jit(jc.impulse)(model, loops, q, jnp.full(model.nv, 0.5)).v
    path = jd.simulate(System(model, (Recorder(),)), q, v, jnp.linspace(0, seconds, 2 * seconds + 1)).checked()
    ends = path.parts[0].acting
    position, rate, kinetic, energy = (np.asarray(x) for x in measure_drift(model, loops, ends))
    change = float(np.abs(energy - energy[0]).max() / kinetic.max())
    return {
        "mechanism": "+".join(names), "seconds": seconds, "position": float(position.max()),
        "rate": float(rate.max()), "energy": change,
        "steps": int(path.num_steps), "moved": float(np.abs(ends[0] - q).max()),
    }  # fmt: skip
