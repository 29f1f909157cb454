"""The machine's own time and chance, and the names that are made of them."""

import asyncio
import os
import random
import secrets
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SYNCHRONIZE, _ACCESS_DENIED, _WAIT_TIMEOUT = 0x0010_0000, 5, 0x102
"""What Windows calls the right to wait for a process, a refusal, and that a process has not ended."""


class SystemClock:
    """The machine's own time."""

    # Asked for at every step of every exchange, so that there is nothing between.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def chance() -> Callable[[], str]:
    """Six hexadecimal digits at a time. Nothing hangs on their being guessed, so that the system is asked only once."""
    source = random.Random(secrets.randbits(128))
    return lambda: f"{source.getrandbits(24):06x}"


def process_name() -> str:
    """A name for this process that no other has, on this machine or another, now or later."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start_time(os.getpid())}"


def is_alive(process: str) -> bool:
    """Whether a process of this machine that calls itself so still runs; of another machine's nobody can tell here."""
    host, _, rest = process.partition(":")
    number, _, started = rest.partition(":")
    if host != socket.gethostname() or not number.isdecimal():
        return False
    return _is_running(int(number)) and _start_time(int(number)) == started


def _is_running(number: int) -> bool:
    if sys.platform == "win32":
        return _is_running_on_windows(number)
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's, and alive
    return True


def _is_running_on_windows(number: int) -> bool:
    """There `os.kill` ends a process whatever the signal is."""
    import ctypes

    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore] # other systems have none
    handle = kernel.OpenProcess(_SYNCHRONIZE, 0, number)
    if not handle:
        return bool(kernel.GetLastError() == _ACCESS_DENIED)  # somebody else's, and alive
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)
    finally:
        kernel.CloseHandle(handle)


def _start_time(number: int) -> str:
    """When a process was started, where the system tells; numbers of processes are used again."""
    try:
        # The name of the program stands in parentheses, and may hold any.
        return Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except OSError:
        return ""


class Ids:
    """Names for exchanges, which sort as they were made: microseconds since 1970, never twice the same, and some chance
    for those who share a record."""

    def __init__(self, nanoseconds: Callable[[], int], chance: Callable[[], str]) -> None:
        self._nanoseconds = nanoseconds
        self._chance = chance
        self._last = 0

    def __call__(self) -> str:
        """The next one."""
        self._last = max(self._last + 1, self._nanoseconds() // 1000)
        return f"x_{self._last:014x}{self._chance()}"
