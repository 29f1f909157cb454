"""Processes: signals, the event loop, limits and priority, whether a process is alive, and how to end one together with
everything that it started."""

import gc
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Final, TypedDict

if TYPE_CHECKING:  # the recorder has no event loop: loading one would be a third of its memory
    import asyncio

_FILES = 65_536
_LOOK_AGAIN = 0.01
_SYNCHRONIZE, _ACCESS_DENIED, _WAIT_TIMEOUT = 0x0010_0000, 5, 0x102
"""Windows constants: the right to wait for a process, "access denied", and "the process has not ended"."""
_NEW_GROUP: Final = 0x0200
"""Windows: the process starts a group of its own, which a Ctrl-C of our console does not reach."""


# --- signals ---


def signals_named(*names: str) -> tuple[signal.Signals, ...]:
    """Those of these signals that the system has. Windows lacks SIGHUP and SIGQUIT, and only Windows has SIGBREAK."""
    return tuple(signal.Signals[name] for name in names if name in signal.Signals.__members__)


ENDING: Final = signals_named("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""The signals that ask a program to end: from Ctrl-C, a service manager, a terminal that is closed; Ctrl-Break on
Windows."""


@contextmanager
def handle_signals(
    handlers: Mapping[signal.Signals, Callable[[], object]], *, on_loop: bool = sys.platform != "win32"
) -> Iterator[None]:
    """Call these handlers on the running loop when a signal arrives, while the context is open. The loop of Windows
    does not support handlers (`on_loop` False): there Python's own handlers pass the call to the loop, which Python
    wakes."""
    import asyncio

    loop = asyncio.get_running_loop()
    if on_loop:
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)
        return
    with replace_handlers(lambda number: loop.call_soon_threadsafe(handlers[signal.Signals(number)]), *handlers):
        yield


@contextmanager
def replace_handlers(handler: Callable[[int], object], *numbers: signal.Signals) -> Iterator[None]:
    """Call the handler with the number of the signal, between two steps of the main thread, while the context is
    open."""
    before = {number: signal.signal(number, lambda number, _frame: handler(number)) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def ignore_signals(*numbers: signal.Signals) -> None:
    """Leave these signals to the process that started this one: a terminal sends them to both."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def send_to_thread(thread: int, number: signal.Signals) -> None:
    """Interrupt one thread of this process with a signal. Windows has no such signals, and nothing happens there."""
    if sys.platform != "win32":
        signal.pthread_kill(thread, number)


# --- this process ---


def new_loop() -> "asyncio.AbstractEventLoop":
    """A uvloop event loop if uvloop is installed. It does not exist for Windows, whose own loop can start processes but
    cannot watch sockets (`can_watch_sockets`)."""
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def can_watch_sockets(loop: "asyncio.AbstractEventLoop", platform: str = sys.platform) -> bool:
    """Whether the loop can call back when a socket is readable."""
    import asyncio

    return platform != "win32" or isinstance(loop, asyncio.SelectorEventLoop)


def readiness_check(socket_descriptor: int) -> Callable[[], object]:
    """A function that returns whether a socket has something to read, without waiting."""
    if sys.platform == "win32":
        return lambda: select.select([socket_descriptor], [], [], 0)[0]
    else:  # noqa: RET505 - a type checker for Windows must see that this is not reached there
        poll = select.poll()
        poll.register(socket_descriptor, select.POLLIN)
        return partial(poll.poll, 0)


def allow_rebinding(listening: socket.socket) -> None:
    """Let a server listen at the address of one that has just ended. Windows always allows that, and the option would
    let two servers listen at one address."""
    if sys.platform != "win32":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def allow_many_files() -> None:
    """Raise the limit of open files: each client takes one, and so does the connection to its provider. Windows has no
    such limit."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(ValueError):  # macOS has a limit below the one that it reports
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def lower_priority() -> None:
    """Let other processes go first, on systems that support it in one call."""
    if sys.platform != "win32":
        os.nice(5)


def yield_core() -> None:
    """Let a process continue that waits for this core. The system would otherwise let this one run for some
    milliseconds first, even if it has the lower priority."""
    if sys.platform != "win32":
        os.sched_yield()


def cores() -> int:
    """The number of cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


_IDLE_SHARE = 0.05
"""A process that used less than this share of a core counts as idle."""


class MemoryTrimmer:
    """Returns memory to the system that this process no longer needs: garbage that the collector has not found yet, and
    what the C library keeps after a burst of streams, a third of a server's memory. Finding both takes milliseconds, so
    it is done when the process is idle, and only after this many seconds of work (`worth_it`)."""

    def __init__(self, worth_it: float = 0.05) -> None:
        self._worth_it = worth_it
        self._looked = self._used = self._used_before = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it is time to give memory back: there was work before, and hardly any since the last call. Call it
        from time to time, with the time in seconds."""
        used = process_time()
        is_idle = used - self._used <= _IDLE_SHARE * (now - self._looked)
        self._looked, self._used = now, used
        return is_idle and used - self._used_before >= self._worth_it

    def give_back(self) -> None:
        gc.collect()
        _trim_heap()
        self._used_before = process_time()


def _trim_heap() -> None:
    """Make the C library return every free page; only GNU's has a function for that."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


# --- another process ---


def is_running(number: int) -> bool:
    if sys.platform == "win32":
        return _is_running_on_windows(number)
    else:  # noqa: RET505 - a type checker for Windows must see that this is not reached there
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # another user's process, and alive
        return True


def _is_running_on_windows(number: int) -> bool:
    """Needed because `os.kill` on Windows ends a process whatever the signal is."""
    import ctypes

    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore] # other systems have none
    handle = kernel.OpenProcess(_SYNCHRONIZE, 0, number)
    if not handle:
        return bool(kernel.GetLastError() == _ACCESS_DENIED)  # another user's process, and alive
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)
    finally:
        kernel.CloseHandle(handle)


def has_ended(child: int) -> bool:
    """Whether a child has ended, according to the system: asyncio notices a moment later, when its port is already
    closed. False if the system cannot tell without taking the exit code from asyncio."""
    if sys.platform == "win32" or not hasattr(os, "waitid"):
        return False
    else:  # noqa: RET505 - as above
        try:
            return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True


def start_time(number: int) -> str:
    """The start time of a process, which tells it from later ones with the same pid; empty if there is no /proc."""
    try:
        return _stat_of(number)[19]
    except OSError:
        return ""


def _stat_of(number: int) -> list[str]:
    """The fields of /proc/PID/stat, counted from the end of the program's name: that is in parentheses, and may contain
    parentheses and spaces itself."""
    return (_PROC / str(number) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()


# --- process trees ---

MARK = "_SIGHTLINE_CHILD"
"""The variable that marks a child; its descendants inherit it."""
_PROC = Path("/proc")
_GONE = ("Z", "X")


READS_ANY_PIPE: Final = sys.platform != "win32"
"""Whether the event loop can read pipes that it did not create itself; that of Windows cannot."""


class OwnGroup(TypedDict, total=False):
    """Options to start a process so that our terminal's signals do not reach it, and it can be ended with its
    descendants."""

    start_new_session: bool
    creationflags: int


def own_group(platform: str = sys.platform) -> OwnGroup:
    """The options for `subprocess` and the event loop that start a process in a group of its own."""
    return {"creationflags": _NEW_GROUP} if platform == "win32" else {"start_new_session": True}


def tree_killer(leader: int) -> list[str]:
    """The command that ends a Windows process and everything that it started."""
    return ["taskkill", "/PID", str(leader), "/T", "/F"]


def kill_own_group() -> None:
    """End this process, which was started with `own_group`, and everything that it started, at once."""
    if sys.platform == "win32":
        subprocess.run(tree_killer(os.getpid()), check=False, capture_output=True)
        os._exit(1)
    else:
        os.killpg(0, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """A child and its descendants. `born` is the child's start time, which shows whether the pid was reused."""

    leader: int
    mark: str
    born: str

    @classmethod
    def of(cls, leader: int, mark: str) -> "ProcessTree":
        """The process tree of a child that was just started."""
        return cls(leader, mark, start_time(leader))

    def is_left(self) -> bool:
        """Whether any of the processes is alive. Without /proc only the child and its group can be checked."""
        if _PROC.is_dir():
            return bool(self.alive())
        if sys.platform == "win32":
            return is_running(self.leader)
        else:  # noqa: RET505 - as above
            return self._send_to_group(0)

    async def wait_until_gone(self) -> None:
        """Wait until none is alive. There is no event for the end of a process that is not our child."""
        import asyncio

        while self.is_left():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN)

    def terminate(self) -> bool:
        """Ask all of them to end; returns whether there were any. Windows cannot ask, and ends them."""
        return self._send(signal.SIGTERM)

    def kill(self) -> bool:
        """End all of them at once; returns whether there were any."""
        return self._send(getattr(signal, "SIGKILL", signal.SIGTERM))

    def alive(self) -> list[int]:
        """The pids of the processes that are alive, from /proc."""
        needle = f"{MARK}={self.mark}".encode()
        # The system does not reuse the pid of a child that has ended while its session exists.
        is_its_session = bool(self.born) and start_time(self.leader) in (self.born, "")
        found: list[int] = []
        for entry in _PROC.iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):  # it has ended meanwhile, or belongs to another user
                state, _, _, session, *_ = _stat_of(int(entry.name))
                if state not in _GONE and (
                    (is_its_session and session == str(self.leader))
                    or needle in (entry / "environ").read_bytes().split(b"\0")
                ):
                    found.append(int(entry.name))
        return found

    def _send(self, number: signal.Signals) -> bool:
        if sys.platform == "win32":
            return subprocess.run(tree_killer(self.leader), check=False, capture_output=True).returncode == 0
        else:  # noqa: RET505 - as above
            if not _PROC.is_dir():
                return self._send_to_group(number)
            alive = self.alive()
            if self.leader in alive:
                self._send_to_group(number)  # stop all first, so that none can fork in the meantime
            for pid in alive:
                with suppress(ProcessLookupError, PermissionError):
                    if self.leader not in alive or os.getpgid(pid) != self.leader:
                        os.kill(pid, number)
            return bool(alive)

    if sys.platform != "win32":

        def _send_to_group(self, number: int) -> bool:
            try:
                os.killpg(self.leader, number)
            except (ProcessLookupError, PermissionError):  # macOS raises PermissionError for a group of zombies
                return False
            return True
