"""Eager calls compile once: a second call with arguments of the same shapes compiles nothing.

Loops outside of compiled functions are compiled at every call, which takes seconds and memory that is not released.
"""

import jax
import jax.numpy as jnp
import pytest

import jaxdyn as jd
from jaxdyn import formulations, paths
from jaxdyn.simulation import simulate_batch

from ._calls import MODEL, VALUES, public_functions, valid_arguments

_EVENTS: list[str] = []
jax.monitoring.register_event_duration_secs_listener(lambda event, duration, **_: _EVENTS.append(event))
_COMPILATION = "/jax/core/compile/backend_compile_duration"


def count_compilations(call) -> int:
    """Number of compilations of a call."""
    _EVENTS.clear()
    jax.block_until_ready(jax.tree.leaves(call()))
    return _EVENTS.count(_COMPILATION)


def _batch():
    start = VALUES["q0"][None], VALUES["v0"][None]
    return simulate_batch(MODEL, *start, VALUES["ts"], dt=0.01)


def _gradient():
    return jax.grad(lambda m: jd.rnea(m, VALUES["q"], VALUES["v"], VALUES["a"]).sum(), allow_int=True)(MODEL)


def _follow():
    arm = jd.robots.double_pendulum()
    return paths.resolved_rates(arm, jnp.array([0.3, 0.4]), arm.link_names[-1], jnp.zeros(6))


#: calls that need arguments of their own
_CALLS = {
    "simulate_batch": _batch,
    "gradient of rnea": _gradient,
    "resolved_rates": _follow,
    "Lagrange": lambda: formulations.Lagrange().inverse_dynamics(
        jd.robots.double_pendulum(), jnp.ones(2), jnp.ones(2), jnp.ones(2)
    ),
    "reading": lambda: jd.parse_urdf("<robot name='r'><link name='a'/></robot>"),
}
#: entry points that run a loop: one that searches, one over time
_LOOPS = ("inverse_kinematics", "simulate")


@pytest.mark.slow(*_LOOPS)
@pytest.mark.parametrize("name", [*public_functions(), *_CALLS])
def test_second_eager_call_compiles_nothing(name):
    call = _CALLS.get(name)
    if call is None:
        function = public_functions()[name]
        arguments = valid_arguments(function)
        call = lambda: function(**arguments)
    call()
    assert count_compilations(call) == 0


@pytest.mark.slow
def test_compilations_are_counted():
    assert count_compilations(lambda: jax.jit(lambda x: x + 1)(jnp.zeros(3))) >= 1
