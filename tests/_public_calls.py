"""A plug-in that proves that the default tier calls every public function.

Each public function gets a code object that records the first call which returns, and then puts the function's own
code back, so that later calls cost nothing. A call that raises does not count. Workers report to the controller. If the
whole tier ran and passed, but a public function was never called, the session fails and lists it.
"""

import importlib.util
import inspect
from types import CodeType, FunctionType

import pytest

from tests._public_names import public_names

DEFAULT_TIER = "not slow and not exhaustive"
#: called by tests in processes of their own, which do not report
IN_OTHER_PROCESSES = {"jaxdyn.distributed.initialize"}
#: solves a program whose compilation takes about a minute; the exhaustive tier runs it
LONG = {"jaxdyn.trajopt.solve_through_contact"}
#: packages without which tests of functions are skipped
OPTIONAL = {"jaxdyn.trajopt.ipopt": "ipyopt"}
#: options that select some of the tests
SELECTIONS = ("keyword", "part", "lf", "deselect", "ignore", "ignore_glob", "collectonly")
#: name by which the code of a recorder finds it, in the globals of the function that it replaces
_RECORD = "_record_public_call"


class CallRecorder:
    """Records the names of functions that have been called."""

    def __init__(self):
        self.uncalled: set[str] = set()
        self._functions: dict[str, FunctionType] = {}
        self._codes: dict[str, tuple[CodeType, CodeType]] = {}

    def watch(self, name: str, function: FunctionType) -> None:
        """Removes the name of a function without free variables from `uncalled` when it first returns."""
        scope: dict[str, FunctionType] = {}
        exec(f"def recorder(*args, **kwargs): return {_RECORD}({name!r}, args, kwargs)", scope)
        self.uncalled.add(name)
        self._functions[name], self._codes[name] = function, (function.__code__, scope["recorder"].__code__)
        function.__signature__ = inspect.signature(function)
        function.__globals__[_RECORD] = self._call
        function.__code__ = self._codes[name][1]

    def _call(self, name: str, args, kwargs):
        function, (own, recorder) = self._functions[name], self._codes[name]
        function.__code__ = own
        try:
            result = function(*args, **kwargs)
        except BaseException:
            function.__code__ = recorder
            raise
        self.uncalled.discard(name)
        return result


def public_functions() -> dict[str, FunctionType]:
    """The public functions, without their decorators, each under one name."""
    out = {}
    for name in sorted(public_names() - IN_OTHER_PROCESSES - LONG):
        if name in OPTIONAL and importlib.util.find_spec(OPTIONAL[name]) is None:
            continue
        module, _, attribute = name.rpartition(".")
        value = inspect.unwrap(getattr(importlib.import_module(module), attribute))
        if isinstance(value, FunctionType):
            out[value] = name
    return {name: function for function, name in out.items()}


def selects_default_tier(config: pytest.Config) -> bool:
    """Whether a session runs the whole default tier."""
    option = config.option
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and option.markexpr == DEFAULT_TIER
    return is_whole and not any(getattr(option, name, None) for name in SELECTIONS)


def _has_workers(config: pytest.Config) -> bool:
    return bool(getattr(config.option, "tx", None))


class PublicCalls:
    """The plug-in, in the controller and in each worker."""

    def __init__(self, config: pytest.Config):
        worker = getattr(config, "workerinput", None)
        self.is_worker = worker is not None
        self.is_active = worker["records_calls"] if self.is_worker else selects_default_tier(config)
        self.recorder = CallRecorder()
        #: names that no process has called, None before the first report
        self.uncalled: set[str] | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["records_calls"] = self.is_active

    def pytest_collection_finish(self, session):
        if self.is_active and not _has_workers(session.config):
            for name, function in public_functions().items():
                self.recorder.watch(name, function)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        self._add(node.workeroutput.get("uncalled") if hasattr(node, "workeroutput") else None)

    def pytest_sessionfinish(self, session, exitstatus):
        if not self.is_active:
            return
        if self.is_worker:
            session.config.workeroutput["uncalled"] = sorted(self.recorder.uncalled)
            return
        if not _has_workers(session.config):
            self._add(self.recorder.uncalled)
        if exitstatus == pytest.ExitCode.OK and self.uncalled:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter, exitstatus):
        if self.uncalled and not self.is_worker:
            terminalreporter.section("public functions that no test of the default tier calls")
            for name in sorted(self.uncalled):
                terminalreporter.write_line(name)

    def _add(self, names):
        if names is not None:
            self.uncalled = set(names) if self.uncalled is None else self.uncalled & set(names)
