"""Calls plug-ins so that their failures stay contained: errors and wrong results are faults that name the plug-in. A
call that does not return is ended if possible, and not made again."""

import asyncio
import ctypes
import logging
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from traceback import extract_tb
from types import FrameType
from typing import Any, Final, ParamSpec, TypeVar

from sightline.errors import Code, Fault
from sightline.platform.processes import send_to_thread
from sightline.plugins.plugin import Plugin
from sightline.settings import PluginSettings

_LOG = logging.getLogger("sightline")

LOAD_SECONDS: Final = 60.0
FILE_SECONDS: Final = 600.0
"""For calls that read or write whole files."""

P = ParamSpec("P")
R = TypeVar("R")

PLAIN: Final = "it is an `async def`, which nothing waits for here; write a plain function"


@dataclass(slots=True)
class LoadedPlugin:
    """A plug-in that the user has named. `place` is the file or the package that it comes from. `failures` has the
    reason why a part has failed, by what it adds (`hook notify`); the key is empty if the plug-in could not be loaded
    at all. Parts that are `off` are not called again; parts that are `refused` were never added, for example because
    another part has the name. `seconds` is how long a call for one request, text or exchange may take."""

    named: str
    place: str
    plugin: Plugin | None = None
    failures: dict[str, str] = field(default_factory=dict)
    off: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    seconds: float = PluginSettings().timeout_s

    def fail(self, what: str, error: BaseException) -> Fault:
        """Record that this part of the plug-in has failed, and log it the first time. Returns the fault."""
        reason = describe_error(error)
        if what not in self.failures:
            self.failures[what] = reason
            _LOG.warning("%s failed: %s", self._label(what), reason)
            _LOG.debug("the failure of %s", self._label(what), exc_info=error)
        return self.fault_of(what, reason)

    def guard(
        self,
        what: str,
        call: Callable[P, R],
        returns: type | tuple[type, ...] = object,
        *,
        seconds: float = 0.0,
    ) -> Callable[P, R]:
        """Wrap a call so that its unexpected errors and results are faults that name the plug-in. Its own faults pass
        through. If a call takes longer than `seconds`, by default the plug-in's own limit, the part is switched off."""
        limit = seconds or self.seconds

        def call_guarded(*args: P.args, **options: P.kwargs) -> R:
            self.check_on(what)
            try:
                result = call_within(limit, call, partial(self.switch_off, what, limit), *args, **options)
            except Fault:
                raise
            except OverdueError:
                raise self.switch_off(what, limit) from None
            except (Exception, SystemExit) as error:
                raise self.fail(what, error) from error
            if asyncio.iscoroutine(result) and returns is not Awaitable:
                result.close()
                raise self.fail(what, TypeError(PLAIN))
            if not isinstance(result, returns):
                raise self.fail(what, TypeError(f"it returned {type(result).__name__}, not {_names(returns)}"))
            return result

        return call_guarded

    async def wait(self, what: str, result: Awaitable[R], *, seconds: float) -> R:
        """The result of an async call of the plug-in, guarded in the same way: both waiting and computing are
        limited."""
        self.check_on(what)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                value: R = await _Steps(result, self.seconds, partial(self.switch_off, what, self.seconds))
        except Fault:
            raise
        except OverdueError:
            raise self.switch_off(what, self.seconds) from None
        except (Exception, SystemExit) as error:
            if not limit.expired():
                raise self.fail(what, error) from error
            raise self.switch_off(what, seconds) from None
        return value

    def switch_off(self, what: str, seconds: float) -> Fault:
        """Record that this part did not return, so that it is not called again."""
        self.off.add(what)
        return self.fail(what, TimeoutError(f"it did not return within {seconds:g} s"))

    def check_on(self, what: str) -> None:
        """Raise a Fault if this part is switched off."""
        if what in self.off:
            raise self.fault_of(what, f"{self.failures[what]}; it is off until the next start")

    def fault_of(self, what: str, reason: str) -> Fault:
        """The fault of this part, or of the whole plug-in if the part is empty."""
        file = self.place if self.named.endswith(".py") else self.named
        hint = f"Run `sightline plugin test {file}`, or take it out of [plugins]."
        return Fault(Code.CONFIG, f"{self._label(what)} failed: {reason}", hint=hint)

    def _label(self, what: str) -> str:
        return f"the plug-in {self.named!r}{f' ({what})' if what else ''}"


def describe_error(error: BaseException) -> str:
    """What was raised, and in which line, unless that is a line of Sightline. For a fault, its own message."""
    if isinstance(error, Fault):
        return f"{error.message}. {error.hint}" if error.hint else error.message
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = [each for each in extract_tb(error.__traceback__) if not each.filename.startswith(_OWN_PATHS)]
    return f"{said} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else said


_OWN_PATHS: Final = (str(Path(__file__).resolve().parents[1]), "<frozen importlib")


def _names(types: type | tuple[type, ...]) -> str:
    return " or ".join(each.__name__ for each in (types if isinstance(types, tuple) else (types,)))


@dataclass(frozen=True, slots=True)
class _Steps:
    """Awaits something step by step, each within the time limit of a call: code between two awaits can hang as well."""

    waiting: Awaitable[Any]
    seconds: float
    on_overdue: Callable[[], object]

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self.waiting.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                awaited = call_within(self.seconds, step, self.on_overdue)
            except StopIteration as end:
                return end.value
            try:
                value = yield awaited
            except BaseException as error:  # noqa: BLE001 - a cancellation is for the plug-in's code
                step = partial(_throw, steps, error)
            else:
                step = partial(_send, steps, value)


def _send(steps: Generator[Any, Any, Any], value: object) -> Any:
    return next(steps) if value is None else steps.send(value)


def _throw(steps: Generator[Any, Any, Any], error: BaseException) -> Any:
    return steps.throw(error)


# --- calls that do not return -----------------------------------------------------------------------


class OverdueError(BaseException):
    """Ends a call that takes too long. Not an Exception, so that `except Exception` in a plug-in does not catch it."""


@dataclass(slots=True)
class _Call:
    seconds: float
    on_overdue: Callable[[], object]
    lasted: float = 0.0

    @property
    def is_overdue(self) -> bool:
        return self.lasted > self.seconds


_CALLS: Final[dict[int, _Call]] = {}
"""The outermost call of a plug-in on each thread."""
_POLL: Final = 0.5
_WATCHED: Final = threading.Event()
_ENDING: Final = threading.Lock()
_SIGNAL: Final = getattr(signal, "SIGVTALRM", None)
"""Also ends calls that wait in a system call, but only on the main thread. Windows does not have it."""


def call_within(
    seconds: float, call: Callable[P, R], on_overdue: Callable[[], object], *args: P.args, **options: P.kwargs
) -> R:
    """Make a call with a time limit. If it is exceeded, another thread calls `on_overdue`, and an OverdueError ends the
    call: on the main thread, which runs the server, at once; on others, as soon as they run Python code again. A call
    inside another has the limit of the outer one."""
    thread = threading.get_ident()
    if thread in _CALLS:
        return call(*args, **options)
    _watch()
    _CALLS[thread] = _Call(seconds, on_overdue)
    try:
        return call(*args, **options)
    finally:
        with _ENDING:  # an error that is being raised for this thread arrives here at the latest
            _CALLS.pop(thread, None)


def _watch() -> None:
    """Start the watching thread, once. The main thread also installs the handler of the signal that ends a call."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and _SIGNAL is not None and signal.getsignal(_SIGNAL) is signal.SIG_DFL:
        signal.signal(_SIGNAL, _end_call)
    if not _WATCHED.is_set():  # a second watching thread does no harm
        _WATCHED.set()
        threading.Thread(target=_watch_calls, name="plug-in calls", daemon=True).start()


def _watch_calls() -> None:
    main = threading.main_thread().ident
    assert main is not None  # the main thread is running
    while True:
        time.sleep(_POLL)
        for thread, call in list(_CALLS.items()):
            call.lasted += _POLL  # counted, not measured by a clock: a machine that was asleep has not made a call slow
            if not call.is_overdue:
                continue
            call.on_overdue()
            if thread == main and _SIGNAL is not None and signal.getsignal(_SIGNAL) is _end_call:
                send_to_thread(main, _SIGNAL)
                continue
            with _ENDING:
                if _CALLS.get(thread) is call:
                    del _CALLS[thread]
                    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
                    raise_in(ctypes.c_ulong(thread), ctypes.py_object(OverdueError))


def _end_call(_number: int, _frame: FrameType | None) -> None:
    """Runs on the main thread, interrupting it at any point; ends only a call that is overdue right now."""
    call = _CALLS.get(threading.get_ident())
    if call is not None and call.is_overdue:
        del _CALLS[threading.get_ident()]
        raise OverdueError
