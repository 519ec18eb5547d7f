"""The recorder of public calls: which calls count, and which sessions are checked."""

from types import SimpleNamespace

import pytest

from tests._public_calls import DEFAULT_TIER, CallRecorder, PublicCalls, public_functions, selects_default_tier


def halve(x, *, of=2):
    """Raises for a string."""
    return x / of


def _config(**option):
    options = {"markexpr": DEFAULT_TIER, "keyword": "", "part": None, "tx": ["popen"], **option}
    source = options.pop("source", pytest.Config.ArgsSource.TESTPATHS)
    return SimpleNamespace(option=SimpleNamespace(**options), args_source=source)


def test_first_call_that_returns_is_recorded():
    recorder, code = CallRecorder(), halve.__code__
    recorder.watch("halve", halve)
    with pytest.raises(TypeError):
        halve("a")
    assert recorder.uncalled == {"halve"}
    assert halve(4, of=4) == 1 and recorder.uncalled == set() and halve.__code__ is code


def test_public_functions_are_plain():
    functions = public_functions()
    assert len(functions) > 300 and "jaxdyn.dynamics.rnea" in functions
    assert [name for name, f in functions.items() if f.__code__.co_freevars] == []


def test_sessions_of_the_whole_default_tier_are_checked():
    assert selects_default_tier(_config())
    for option in ({"markexpr": "slow"}, {"keyword": "a"}, {"source": pytest.Config.ArgsSource.ARGS}):
        assert not selects_default_tier(_config(**option))


@pytest.mark.parametrize("uncalled, status", [(["f"], pytest.ExitCode.TESTS_FAILED), ([], pytest.ExitCode.OK)])
def test_session_fails_where_no_worker_called_a_function(uncalled, status):
    plugin = PublicCalls(_config())
    for own in (["f", "g"], uncalled):
        plugin.pytest_testnodedown(SimpleNamespace(workeroutput={"uncalled": own}), None)
    session = SimpleNamespace(config=_config(), exitstatus=pytest.ExitCode.OK)
    plugin.pytest_sessionfinish(session, pytest.ExitCode.OK)
    assert session.exitstatus == status
