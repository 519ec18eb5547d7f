"""Eager calls compile once: a second call with other numbers of the same shapes compiles nothing.

Loops outside of compiled functions are compiled at every call, and Python numbers in their arguments for each value,
which takes seconds and memory that is not released.
"""

import jax
import jax.numpy as jnp
import pytest

from ._calls import public_functions, valid_arguments
from ._eager_calls import LONG, QUICK, SLOW, renumber

_EVENTS: list[str] = []
jax.monitoring.register_event_duration_secs_listener(lambda event, duration, **_: _EVENTS.append(event))
_COMPILATION = "/jax/core/compile/backend_compile_duration"
#: entry points that run a loop
_LOOPS = ("inverse_kinematics", "assemble", "simulate", "integrate_fixed_steps")


def count_compilations(call) -> int:
    """Number of compilations of a call."""
    _EVENTS.clear()
    jax.block_until_ready([x for x in jax.tree.leaves(call()) if isinstance(x, jax.Array)])
    return _EVENTS.count(_COMPILATION)


def _check(call):
    call(0)
    assert count_compilations(lambda: call(1)) == 0


@pytest.mark.parametrize("name", QUICK)
def test_second_quick_call_compiles_nothing(name):
    _check(QUICK[name])


@pytest.mark.slow(*SLOW)
@pytest.mark.parametrize("name", [*SLOW, *LONG])
def test_second_call_of_an_entry_point_compiles_nothing(name):
    _check((SLOW | LONG)[name])


@pytest.mark.slow(*_LOOPS)
@pytest.mark.parametrize("name", public_functions())
def test_second_call_of_a_function_of_a_model_compiles_nothing(name):
    function = public_functions()[name]
    arguments = valid_arguments(function)
    _check(lambda k: function(**renumber(arguments, k)))


@pytest.mark.slow
def test_compilations_are_counted():
    assert count_compilations(lambda: jax.jit(lambda x: x + 1)(jnp.zeros(3))) >= 1
